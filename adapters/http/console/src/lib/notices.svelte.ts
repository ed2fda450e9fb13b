// Short messages that the page shows and reads out.

import { t } from "./en";
import { Problem } from "./http";

export type Notice = { id: number; text: string; isError: boolean };

/** How long a message without error stays at least, and for each of its characters, in milliseconds. */
const SHOWN_MS = 6000;
const READ_MS = 60;

/** Most messages that are shown at once. */
const MOST = 3;

class Notices {
  items = $state<Notice[]>([]);
  private next = 0;

  say(text: string): void {
    const { id } = this.add(text, false);
    setTimeout(() => this.close(id), Math.max(SHOWN_MS, text.length * READ_MS));
  }

  fail(error: unknown): void {
    this.add(inWords(error), true);
  }

  close(id: number): void {
    this.items = this.items.filter((notice) => notice.id !== id);
  }

  private add(text: string, isError: boolean): Notice {
    const notice = { id: this.next++, text: text.replaceAll("`", ""), isError };
    // The same message again replaces the one before.
    this.items = [...this.items.filter((other) => other.text !== notice.text), notice].slice(-MOST);
    return notice;
  }
}

/** Returns what an error says to people. */
export function inWords(error: unknown): string {
  if (error instanceof Problem) return error.message;
  return error instanceof Error && error.message ? error.message : t.problem.unknown;
}

export const notices = new Notices();

/** Does something that may fail, and shows why it did. Returns whether it worked. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    // The form to log in says so.
    if (!(error instanceof Problem && error.status === 401)) notices.fail(error);
    return false;
  }
}
