// Where the picture of a name and its neighbours stands. It is as wide as a phone, so that nothing needs to shrink there.

import type { Relation } from "./types";

export const WIDTH = 360;
export const HEIGHT = 420;

/** How wide and high a name's box is at most. */
export const BOX = { width: 88, height: 30 };

/** Most neighbours of the picture. */
const MOST = 8;

/** Most characters of a name, and of a relation. */
const NAME_LENGTH = 11;
const WORDS_LENGTH = 16;

/** Confidence below which a relation is doubtful. */
const SURE = 0.7;

export type Point = { x: number; y: number };

/** A neighbour: its place, that of the words on the line to it, and its relations. */
export type Neighbour = { name: string; at: Point; label: Point; relations: Relation[] };

export const CENTRE: Point = { x: WIDTH / 2, y: HEIGHT / 2 };

const RADIUS: Point = { x: WIDTH / 2 - BOX.width / 2 - 4, y: HEIGHT / 2 - BOX.height / 2 - 12 };

/** Returns the neighbours of the picture, and how many there is no room for. */
export function neighbours(relations: Relation[]): { shown: Neighbour[]; hidden: number } {
  const groups = new Map<string, Relation[]>();
  for (const relation of relations) groups.set(relation.other, [...(groups.get(relation.other) ?? []), relation]);
  const all = [...groups];
  const count = Math.min(all.length, MOST);
  const shown = all.slice(0, count).map(([name, relations], index) => {
    const { x, y } = direction(index, count);
    const along = (share: number): Point => ({ x: CENTRE.x + RADIUS.x * x * share, y: CENTRE.y + RADIUS.y * y * share });
    // The words of lines side by side stand at different heights.
    return { name, at: along(1), label: along(count > 3 && index % 2 ? 0.6 : 0.45), relations };
  });
  return { shown, hidden: all.length - count };
}

/** Returns the direction of a neighbour. None is straight to a side, where the line has no room for words. */
function direction(index: number, count: number): Point {
  const slots = count > 3 ? count + (count % 2) : count;
  const begin = slots % 4 === 0 ? Math.PI / slots : 0;
  const angle = begin - Math.PI / 2 + (2 * Math.PI * index) / slots;
  return { x: Math.cos(angle), y: Math.sin(angle) };
}

export const isDoubtful = (relation: Relation): boolean => relation.confidence < SURE;

const cut = (text: string, length: number): string => {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : text;
};

export const shortName = (name: string): string => cut(name, NAME_LENGTH);

/** Returns a relation without its two names: `sister` for "Ann's sister is Miranda". */
export function shortWords({ said, other }: Relation, name: string): string {
  for (const [one, two] of [[name, other], [other, name]] as const) {
    if (said.length <= one.length + two.length || !said.startsWith(one) || !said.endsWith(two)) continue;
    const between = said.slice(one.length, said.length - two.length).trim();
    return cut(between.startsWith("'s ") ? between.slice(3).replace(/ is$/, "") : between, WORDS_LENGTH);
  }
  return cut(said, WORDS_LENGTH);
}
