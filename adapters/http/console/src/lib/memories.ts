// Memories in the answers of commands, which name each as `m42` in code.

const ID = /`(m\d+)`/g;

/** Returns the ids of memories that a text names, each once. */
export function memoryIds(text: string): string[] {
  return [...new Set([...text.matchAll(ID)].map((found) => found[1] ?? ""))];
}

/** Leaves out the place of a direct message, which is this account itself. */
export const withoutOwnPlace = (text: string): string => text.replace(/ (?:from dm:\S+|\(dm:[^)]*\))/g, "");
