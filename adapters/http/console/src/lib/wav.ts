// Sound as a WAV file: 16 bit, mono.

const HEADER_BYTES = 44;

/** Returns a WAV file of samples from -1 to 1. */
export function wavFile(samples: Float32Array, rate: number): Blob {
  const view = new DataView(new ArrayBuffer(HEADER_BYTES + samples.length * 2));
  const text = (at: number, words: string): void => [...words].forEach((char, index) => view.setUint8(at + index, char.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, view.byteLength - 8, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, samples.length * 2, true);
  let at = HEADER_BYTES;
  for (const sample of samples) {
    view.setInt16(at, Math.max(-1, Math.min(1, sample)) * 0x7fff, true);
    at += 2;
  }
  return new Blob([view], { type: "audio/wav" });
}
