// Dreams, journal entries and pieces, with what they are made of: what the commands `/dream`, `/journal` and `/garden` export.

import { command, inner } from "./api";
import type { Imported } from "./types";

export const KINDS = ["dream", "journal", "garden"] as const;
export type WritingKind = (typeof KINDS)[number];

export type Writing = {
  id: string;
  at: string;
  kind: string;
  title: string | null;
  text: string;
  mood: string | null;
  model: string | null;
  themes: string[];
  /** The ids of the memories that it rests on. */
  sources: string[];
};

export const exported = (kind: WritingKind): Promise<string> => command(`/${kind} export`);

/** Returns the writings of a kind, newest first. */
export async function writings(kind: WritingKind): Promise<Writing[]> {
  const { entries } = JSON.parse(await exported(kind)) as { entries: Writing[] };
  return entries.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** Returns those that contain every one of the words. */
export function matching(all: Writing[], words: string): Writing[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((one) => wanted.every((word) => `${one.title ?? ""} ${one.text}`.toLowerCase().includes(word)));
}

/** Lets the persona write a journal entry or a piece now. */
export async function writeNow(kind: WritingKind): Promise<void> {
  if (kind === "journal") await inner.writeJournal();
  else await command("/garden write");
}

export async function importInto(kind: WritingKind, files: File[]): Promise<Imported> {
  if (kind !== "garden") return inner.importInto(kind === "dream" ? "dreams" : "journal", files);
  const taken: Imported = { status: "ok", imported: 0, skipped: 0, errors: [] };
  for (const file of files) {
    try {
      await command(`/garden import ${await file.text()}`);
      taken.imported++;
    } catch (error) {
      taken.skipped++;
      taken.errors.push(error instanceof Error ? error.message : file.name);
    }
  }
  return taken;
}
