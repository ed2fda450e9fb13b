// Times and sizes in the words of the browser's language.

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const month = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const seconds = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

export const fullTime = (at: string): string => moment.format(new Date(at));

export const fullDay = (at: string): string => day.format(new Date(at));

export const shortMonth = (at: string): string => month.format(new Date(at));

export const secondsTime = (at: string): string => seconds.format(new Date(at));

/** Returns the time of today, or the day. */
export function shortTime(at: string): string {
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : day.format(date);
}

export function bytes(size: number): string {
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${size < 10 && unit > 0 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** Gives the person a file. */
export function download(name: string, type: string, content: BlobPart): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
