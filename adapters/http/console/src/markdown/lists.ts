// Where lists end. In a chat, a line without indentation ends the list above it. Markdown takes it as a part of the last item.

const ITEM = /^\s*(?:[-*+]|\d{1,9}[.)])\s/;
const FENCE = /^\s*(?:```|~~~)/;

/** Separates a list from a line behind it that belongs to no item. Code stays as it is. */
export function endLists(text: string): string {
  let inList = false;
  let inCode = false;
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    const isCode = inCode || FENCE.test(line);
    if (FENCE.test(line)) inCode = !inCode;
    const isItem = !isCode && ITEM.test(line);
    if (inList && !isItem && /^\S/.test(line)) lines.push("");
    inList = isItem || (inList && /^\s+\S/.test(line));
    lines.push(line);
  }
  return lines.join("\n");
}
