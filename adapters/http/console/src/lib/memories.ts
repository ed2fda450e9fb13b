// Memories in the answers of commands, which name each as `m42` in code.

const ID = /`(m\d+)`/g;

/** Returns the ids of memories that a text names, each once. */
export function memoryIds(text: string): string[] {
  return [...new Set([...text.matchAll(ID)].map((found) => found[1] ?? ""))];
}

const NAME = /^- (.+) \(\d+\)$/gm;

/** Returns the names that an answer of `/graph list` names. Those that it shortened cannot be looked up. */
export const namesOf = (text: string): string[] =>
  [...text.matchAll(NAME)].map((found) => found[1] ?? "").filter((name) => name && !name.endsWith("…"));

/** Returns true if an answer of `/memory themes`, `episodes` or `open` names a page behind it. */
export const nextPage = (text: string): boolean => /`\/memory (?:themes|episodes|open)(?: [^`]*)? \d+` goes on\./.test(text);

/** Leaves out the place of a direct message, which is this account itself. */
export const withoutOwnPlace = (text: string): string => text.replace(/ (?:from dm:\S+|\(dm:[^)]*\))/g, "");
