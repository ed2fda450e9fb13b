// How a persona feels, as `/status` tells it.

export type Mind = { mood: string; bars: { name: string; value: number }[]; rest: string };

const BAR = /^(\w+)\s+[█░]+\s+([\d.]+)$/;

/** Reads the answer to `/status`: a sentence, bars in a block of code, and sentences about feelings. */
export function parseMind(answer: string): Mind {
  const bars: Mind["bars"] = [];
  const rest: string[] = [];
  let mood = "";
  for (const line of answer.split("\n")) {
    const bar = BAR.exec(line.trim());
    const feels = /feels? (.+)\.$/.exec(line);
    if (bar) bars.push({ name: bar[1] ?? "", value: Number(bar[2]) });
    else if (feels && !mood) mood = feels[1] ?? "";
    else if (line.trim() && !line.startsWith("```")) rest.push(line);
  }
  return { mood, bars, rest: rest.join("\n\n") };
}
