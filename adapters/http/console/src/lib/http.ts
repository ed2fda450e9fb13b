// Requests to the server that the page came from, and streams of events.

import { t } from "./en";

/** An answer that says why something did not work. `message` is for people. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
  ) {
    super(message);
  }
}

type Body = Record<string, unknown> | FormData;

const state: { csrf: string | null; ended: () => void } = { csrf: null, ended: () => undefined };

/** Sets the token that changes repeat, and what happens once the session has ended. */
export function useSession(csrf: string | null, ended: () => void): void {
  state.csrf = csrf;
  state.ended = ended;
}

async function problemOf(answer: Response): Promise<Problem> {
  const body = (await answer.json().catch(() => ({}))) as { error?: string; code?: string };
  return new Problem(body.error ?? t.problem.status(answer.status), answer.status, body.code ?? "unknown");
}

/** The token is renewed by logins in other tabs. */
async function renewToken(): Promise<boolean> {
  const answer = await fetch("/api/session");
  if (!answer.ok) return false;
  const session = (await answer.json()) as { csrf: string | null };
  const changed = session.csrf !== null && session.csrf !== state.csrf;
  if (changed) state.csrf = session.csrf;
  return changed;
}

async function send(method: string, path: string, body?: Body, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  if (state.csrf) headers["X-CSRF-Token"] = state.csrf;
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers["Content-Type"] = "application/json";
  const content = body === undefined ? null : isForm ? body : JSON.stringify(body);
  try {
    return await fetch(path, { method, headers, body: content, signal: signal ?? null });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(t.problem.unreachable, 0, "unreachable");
  }
}

/** Longest time for which a server that is asked too often may let the page wait, in seconds, and how often it may. */
const PATIENCE_S = 5;
const TRIES = 5;

/** Sends a request, and again if the server says that it was asked too often for the moment. */
async function sendInTime(method: string, path: string, body?: Body, signal?: AbortSignal): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const answer = await send(method, path, body, signal);
    const wait = Number(answer.headers.get("Retry-After"));
    if (answer.status !== 429 || tries === TRIES || !wait || wait > PATIENCE_S) return answer;
    await new Promise((go) => setTimeout(go, wait * 1000));
  }
}

/** Sends a request. Throws a `Problem` with the server's words if it does not work. */
export async function request(method: string, path: string, body?: Body, signal?: AbortSignal): Promise<Response> {
  let answer = await sendInTime(method, path, body, signal);
  if (answer.ok) return answer;
  let problem = await problemOf(answer);
  if (problem.code === "csrf" && (await renewToken())) {
    answer = await send(method, path, body, signal);
    if (answer.ok) return answer;
    problem = await problemOf(answer);
  }
  if (problem.status === 401 && state.csrf) state.ended();
  throw problem;
}

/** Sends a request, and returns its answer as JSON. */
export async function json<T>(method: string, path: string, body?: Body): Promise<T> {
  return (await (await request(method, path, body)).json()) as T;
}

export type ServerEvent = { name: string; data: Record<string, unknown> };

function eventOf(block: string): ServerEvent | null {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) as Record<string, unknown> } : null;
}

/** Returns the events of an answer, in order. */
export async function* events(answer: Response): AsyncGenerator<ServerEvent> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = eventOf(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
