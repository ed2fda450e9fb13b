// Speaking with the persona: whether that works here, the recording under way, and the reply that is spoken.

import { voice as api } from "./api";
import { t } from "./en";
import { attempt, notices } from "./notices.svelte";
import { Recording } from "./recording";
import type { VoiceStatus } from "./types";

/** Longest recording, in seconds. */
const LONGEST_S = 120;

/** A press that is shorter begins a recording that the next press ends, in milliseconds. */
const HOLD_MS = 400;

/** Time between two looks at the length, in milliseconds. */
const LOOK_MS = 200;

const KEY = "azera-speaks-replies";

class Aloud {
  status = $state<VoiceStatus | null>(null);
  /** Whether the microphone is on, or asked for. */
  recording = $state<"no" | "begins" | "yes">("no");
  seconds = $state(0);
  /** Whether the page speaks each reply, as chosen on this device. */
  speaksReplies = $state(localStorage.getItem(KEY) === "yes");
  /** The message whose sound plays or is made. */
  playing = $state<string | null>(null);
  /** Why nothing is heard, while the page shows it. */
  explains = $state(false);

  private current: Recording | null = null;
  /** Counts what asked for the microphone and what threw a recording away. An answer to an earlier question begins nothing. */
  private turn = 0;
  private pressedAt = 0;
  private isHeld = false;
  private timer: ReturnType<typeof setInterval> | undefined;
  private sound: HTMLAudioElement | null = null;

  async load(): Promise<void> {
    this.status ??= await api.status();
  }

  /** The button or the key goes down. It begins a recording, or ends one that is not held. */
  press(send: (sound: Blob) => void): void {
    if (this.recording === "yes") return this.finish(send);
    if (this.recording === "begins") return;
    if (!this.status?.hears) {
      this.explains = true;
      return;
    }
    this.hush();
    this.isHeld = true;
    this.pressedAt = performance.now();
    void this.begin(send);
  }

  /** The button or the key comes up. */
  release(send: (sound: Blob) => void): void {
    if (!this.isHeld) return;
    this.isHeld = false;
    if (this.recording === "yes" && performance.now() - this.pressedAt >= HOLD_MS) this.finish(send);
  }

  /** Throws the recording away. */
  discard(): void {
    this.turn++;
    this.current?.end();
    this.reset();
  }

  private async begin(send: (sound: Blob) => void): Promise<void> {
    const turn = ++this.turn;
    this.recording = "begins";
    await attempt(async () => {
      const recording = await Recording.start();
      if (turn !== this.turn) return recording.end();
      this.current = recording;
    });
    if (turn !== this.turn) return;
    if (!this.current) return this.reset();
    this.recording = "yes";
    // The question for the microphone takes longer than a press. What follows counts.
    this.pressedAt = performance.now();
    this.timer = setInterval(() => {
      this.seconds = this.current?.seconds ?? 0;
      if (this.seconds >= LONGEST_S) this.finish(send);
    }, LOOK_MS);
  }

  private finish(send: (sound: Blob) => void): void {
    const sound = this.current?.finish();
    this.reset();
    if (sound) send(sound);
    else notices.say(t.aloud.short);
  }

  private reset(): void {
    clearInterval(this.timer);
    [this.current, this.recording, this.seconds, this.isHeld] = [null, "no", 0, false];
  }

  chooseReplies(speaks: boolean): void {
    this.speaksReplies = speaks;
    localStorage.setItem(KEY, speaks ? "yes" : "no");
    if (!speaks) this.hush();
  }

  /** Speaks a message, or stops to speak it. */
  async play(id: string, text: string, persona: string): Promise<void> {
    const isSame = this.playing === id;
    this.hush();
    if (isSame) return;
    this.playing = id;
    await attempt(async () => {
      const speech = await api.speak(text, persona, "");
      if (this.playing === id) await this.sounds(speech.audio_base64, speech.format);
    });
    if (!this.sound && this.playing === id) this.playing = null;
  }

  private async sounds(base64: string, format: string): Promise<void> {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([bytes], { type: `audio/${format}` }));
    const sound = new Audio(url);
    sound.onended = () => this.hush();
    this.sound = sound;
    // A browser may refuse to play what nobody asked for.
    await sound.play().catch(() => this.hush());
  }

  /** Ends what is spoken. */
  hush(): void {
    if (this.sound) {
      this.sound.pause();
      URL.revokeObjectURL(this.sound.src);
    }
    [this.sound, this.playing] = [null, null];
  }
}

export const aloud = new Aloud();
