// The numbers of a persona's mind, as `/tune` lists and explains them.

import { command } from "./api";

export type TuningNumber = { name: string; value: string };

const LINE = /^(\w+)\s+(-?[\d.]+)$/;

export async function tuningNumbers(): Promise<TuningNumber[]> {
  const lines = (await command("/tune")).split("\n");
  return lines.flatMap((line) => {
    const found = LINE.exec(line.trim());
    return found ? [{ name: found[1] ?? "", value: found[2] ?? "" }] : [];
  });
}

export const explain = (name: string): Promise<string> => command(`/tune ${name}`);
export const tune = (name: string, value: string): Promise<string> => command(`/tune ${name} ${value}`);

/** Returns the range that an explanation names, such as `A number from 0 to 1.` */
export function rangeOf(explanation: string): { min: number; max: number } | null {
  const found = /number from (-?[\d.]+) to (-?[\d.]*\d)/.exec(explanation);
  return found ? { min: Number(found[1]), max: Number(found[2]) } : null;
}
