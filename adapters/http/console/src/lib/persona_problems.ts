// Mistakes in a persona file, as the server's refusal names them.

export type FileProblem = { line: number; column: number | null; text: string };

const EACH = /line (\d+)(?:, column (\d+))?: (?:error|warning): /g;

/** Returns the mistakes that a refusal names, in its order. Empty if it names no lines. */
export function fileProblems(refusal: string): FileProblem[] {
  const found = [...refusal.matchAll(EACH)];
  return found.map((one, index) => ({
    line: Number(one[1]),
    column: one[2] ? Number(one[2]) : null,
    text: refusal
      .slice(one.index + one[0].length, found[index + 1]?.index ?? refusal.length)
      .replace(/;\s*$/, "")
      .trim(),
  }));
}
