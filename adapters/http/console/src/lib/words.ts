// The text of a message, as its sender wrote it.

/** A line about a picture of a message, which Azera adds to its text. */
const ABOUT_PICTURE = /^\[(seen in .+, a guess\] |picture(: .*)?\]$)/;

/** Returns what a person said, without the lines about their pictures. */
export const ownWords = (text: string): string =>
  text
    .split("\n")
    .filter((line) => !ABOUT_PICTURE.test(line))
    .join("\n")
    .trim();
