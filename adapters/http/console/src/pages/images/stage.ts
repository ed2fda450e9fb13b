// Where a picture is that is not drawn yet, in words.

import { t } from "../../lib/en";
import type { DrawingProgress } from "../../lib/types";

export function stage({ state, place, downloaded, step, total_steps }: DrawingProgress): string {
  if (state === "waits") return t.images.waits(place);
  if (state === "loading") return t.images.loads(downloaded);
  return step ? t.images.step(step, total_steps) : t.images.begins;
}
