// What this server can do. A page whose engine is missing (status 501) is not shown.

import { images, inner, system, voice } from "./api";
import { Problem } from "./http";

async function answers(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    // A server with the engine refuses a request that asks for nothing.
    return error instanceof Problem && (error.status === 400 || error.status === 422);
  }
}

class Features {
  images = $state(false);
  voice = $state(false);
  logs = $state(false);
  mood = $state(false);

  async load(isOwner: boolean): Promise<void> {
    [this.images, this.voice, this.mood, this.logs] = await Promise.all([
      answers(images.list),
      answers(() => voice.speak("")),
      answers(() => inner.setMood("")),
      isOwner ? answers(system.logs) : false,
    ]);
  }
}

export const features = new Features();
