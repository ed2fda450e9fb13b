// Records the microphone.

import { t } from "./en";
import { Problem } from "./http";
import workletUrl from "./recorder.worklet.js?url";
import { resampled } from "./resampled";
import { wavFile } from "./wav";

/** Most samples a second that are sent. Speech models hear no more, and two minutes of more can be too large. */
const RATE = 16_000;

/** Shorter recordings hold no word, in seconds. */
const SHORTEST_S = 0.3;

/** Returns a context for the microphone. Not every browser changes the rate of a microphone. */
function contextFor(stream: MediaStream): [AudioContext, MediaStreamAudioSourceNode] {
  const context = new AudioContext({ sampleRate: RATE });
  try {
    return [context, context.createMediaStreamSource(stream)];
  } catch {
    void context.close();
    const native = new AudioContext();
    return [native, native.createMediaStreamSource(stream)];
  }
}

async function microphone(): Promise<MediaStream> {
  // Browsers give the microphone to pages over TLS, and to those of this machine.
  if (!navigator.mediaDevices) throw new Problem(t.aloud.insecure, 0, "microphone");
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true } });
  } catch (error) {
    const isRefused = error instanceof DOMException && error.name === "NotAllowedError";
    throw new Problem(isRefused ? t.aloud.refused : t.aloud.noMicrophone, 0, "microphone");
  }
}

export class Recording {
  private readonly pieces: Float32Array[] = [];

  private constructor(
    private readonly stream: MediaStream,
    private readonly context: AudioContext,
  ) {}

  /** Begins to record. Asks for the microphone, the first time. */
  static async start(): Promise<Recording> {
    const stream = await microphone();
    const [context, source] = contextFor(stream);
    const recording = new Recording(stream, context);
    try {
      await context.audioWorklet.addModule(workletUrl);
      const node = new AudioWorkletNode(context, "recorder", { numberOfOutputs: 0 });
      node.port.onmessage = (event: MessageEvent<Float32Array>) => recording.pieces.push(event.data);
      source.connect(node);
      await context.resume();
    } catch (error) {
      recording.end();
      throw error;
    }
    return recording;
  }

  get seconds(): number {
    return this.pieces.reduce((sum, piece) => sum + piece.length, 0) / this.context.sampleRate;
  }

  /** Ends it without a result. */
  end(): void {
    for (const track of this.stream.getTracks()) track.stop();
    void this.context.close();
  }

  /** Ends it, and returns the sound; null if it is too short to hold a word. */
  finish(): Blob | null {
    this.end();
    if (this.seconds < SHORTEST_S) return null;
    const { sampleRate } = this.context;
    const rate = Math.min(RATE, sampleRate);
    return wavFile(resampled(this.pieces, sampleRate, rate), rate);
  }
}
