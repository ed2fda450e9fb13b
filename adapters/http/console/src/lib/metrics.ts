// Measurements in Prometheus' text format.

export type Sample = { name: string; labels: Record<string, string>; value: number };

const LINE = /^(\w+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function samples(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const found = LINE.exec(line);
    if (!found) return [];
    const labels = [...(found[2] ?? "").matchAll(LABEL)].map((label) => [label[1], label[2]] as const);
    return [{ name: found[1] ?? "", labels: Object.fromEntries(labels), value: Number(found[3]) }];
  });
}

/** Returns the sum of a measurement's samples that have these labels. */
export function total(all: Sample[], name: string, labels: Record<string, string> = {}): number {
  const has = (sample: Sample): boolean => Object.entries(labels).every(([label, value]) => sample.labels[label] === value);
  return all.filter((sample) => sample.name === name && has(sample)).reduce((sum, sample) => sum + sample.value, 0);
}

/** Returns the mean of a histogram; null without any observation. */
export function mean(all: Sample[], name: string): number | null {
  const count = total(all, `${name}_count`);
  return count ? total(all, `${name}_sum`) / count : null;
}
