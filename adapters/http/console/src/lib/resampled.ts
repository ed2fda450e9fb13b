// A sound at a lower rate.

/** Periods of the lower rate, before and after a new sample, that it is made of. */
const REACH = 8;

/** Returns the ideal low-pass filter at `x` periods of the lower rate, faded out at its ends. */
function lowPass(x: number): number {
  if (x === 0) return 1;
  if (Math.abs(x) >= REACH) return 0;
  const angle = Math.PI * x;
  return (Math.sin(angle) / angle) * (0.5 + 0.5 * Math.cos(angle / REACH));
}

/** Returns the weights of the samples around one that is `fraction` of a sample after the middle. Their sum is 1. */
function weightsAt(fraction: number, reach: number, step: number): Float32Array {
  const weights = Float32Array.from({ length: 2 * reach + 1 }, (_, index) => lowPass((index - reach - fraction) / step));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return weights.map((weight) => weight / sum);
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

function joined(pieces: Float32Array[]): Float32Array {
  const whole = new Float32Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Returns the pieces as one, at a rate that is not higher. What is too high for that rate is filtered out. Rates are whole. */
export function resampled(pieces: Float32Array[], from: number, to: number): Float32Array {
  const whole = joined(pieces);
  if (from === to) return whole;
  const step = from / to;
  const reach = Math.ceil(REACH * step);
  // The places of new samples between old ones repeat.
  const phases = to / greatestDivisor(from, to);
  const weights = Array.from({ length: phases }, (_, phase) => weightsAt(((phase * from) % to) / to, reach, step));
  return Float32Array.from({ length: Math.floor(whole.length / step) }, (_, index) => {
    const first = Math.floor(index * step) - reach;
    const around = weights[index % phases] as Float32Array;
    let sum = 0;
    for (let tap = 0; tap < around.length; tap++) sum += (whole[first + tap] ?? 0) * (around[tap] as number);
    return sum;
  });
}
