// Every request of the console, with the type of its answer.

import { events, json, Problem, request, type ServerEvent } from "./http";
import type * as Api from "./types";

const at = (strings: TemplateStringsArray, ...parts: string[]): string =>
  String.raw({ raw: strings }, ...parts.map(encodeURIComponent));

function form(files: File[], texts: Record<string, string> = {}): FormData {
  const form = new FormData();
  for (const [name, text] of Object.entries(texts)) form.append(name, text);
  for (const file of files) form.append("file", file);
  return form;
}

export const session = {
  show: () => json<Api.Session>("GET", "/api/session"),
  logIn: (name: string, password: string) => json<Api.Session>("POST", "/api/login", { name, password }),
  enter: (kind: "setup" | "join", code: string, name: string, password: string) =>
    json<Api.Session>("POST", `/api/${kind}`, { code, name, password }),
  logOut: (wish: { everywhere?: boolean; keys?: boolean }) => json("POST", "/api/logout", wish),
  setPassword: (old: string, next: string) => json("PUT", "/api/password", { old, new: next }),
  deleteAccount: (password: string) => json("DELETE", "/api/account", { password }),
};

export const chats = {
  list: () => json<Api.List<Api.Chat>>("GET", "/api/chats"),
  newest: (limit: number) => json<Api.List<Api.Chat>>("GET", at`/api/chats?limit=${String(limit)}`),
  search: (words: string) => json<Api.List<Api.Chat>>("GET", at`/api/chats/search?q=${words}`),
  create: (title?: string) => json<Api.WholeChat>("POST", "/api/chats", title ? { title } : {}),
  show: (id: string) => json<Api.WholeChat>("GET", at`/api/chats/${id}`),
  change: (id: string, changes: Api.ChatChanges) => json<Api.WholeChat>("PUT", at`/api/chats/${id}`, changes),
  remove: (id: string) => json("DELETE", at`/api/chats/${id}`),
};

export type LabelKind = "groups" | "tags";

export const labels = {
  list: (kind: LabelKind) => json<Api.List<Api.Label>>("GET", `/api/${kind}`),
  create: (kind: LabelKind, name: string) => json<Api.Label>("POST", `/api/${kind}`, { name }),
  rename: (kind: LabelKind, id: string, name: string) =>
    json<Api.Label>("PUT", `/api/${kind}/${encodeURIComponent(id)}`, { name }),
  remove: (kind: LabelKind, id: string) => json("DELETE", `/api/${kind}/${encodeURIComponent(id)}`),
};

export type Said = { chat_id: string; message: string; pictures?: string[]; ai_persona_id?: string; about?: string };

/** Says something, and yields the events of the reply. A failure is thrown. */
export async function* say(said: Said, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
  yield* replyTo(await request("POST", "/api/chat/stream", said, signal));
}

/** Says something aloud, and yields what was heard and the events of the reply. A failure is thrown. */
export async function* sayAloud(chat: string, sound: Blob, persona: string, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
  const file = new File([sound], "said.wav", { type: sound.type });
  const body = form([file], persona ? { ai_persona_id: persona } : {});
  yield* replyTo(await request("POST", at`/api/chats/${chat}/voice`, body, signal));
}

async function* replyTo(answer: Response): AsyncGenerator<ServerEvent> {
  for await (const event of events(answer)) {
    if (event.name === "error") throw new Problem(String(event.data.message), 0, "reply");
    yield event;
  }
}

/** The chat in which the pages run their commands. It has neither title nor messages, so no list shows it. */
export const QUIET_CHAT = "a2e7a000-c0d5-4000-8000-000000000001";

/** Runs a command, and returns its answer, also if it refuses. */
export async function ask(line: string, where: Omit<Said, "message"> = { chat_id: QUIET_CHAT }): Promise<{ text: string; ok: boolean }> {
  let text = "";
  let ok = true;
  for await (const { name, data } of say({ ...where, message: line })) {
    if (name === "content") text += String(data.content);
    if (name === "done") ok = (data as unknown as Api.Done).ok !== false;
  }
  return { text: text.trim(), ok };
}

/** Runs a command, and returns its answer. A command that refuses is an error. */
export async function command(line: string, where?: Omit<Said, "message">): Promise<string> {
  const { text, ok } = await ask(line, where);
  if (!ok) throw new Problem(text, 422, "refused");
  return text;
}

export const memory = {
  search: (query: string, memoryType: string, limit: number) =>
    json<Api.SearchResults>("POST", "/api/search", { query, limit, ...(memoryType ? { memory_type: memoryType } : {}) }),
  known: (offset: number, limit: number) =>
    json<Api.List<Api.Known>>("GET", at`/api/memories/known?offset=${String(offset)}&limit=${String(limit)}`),
  graph: (name: string, limit: number) =>
    json<Api.Graph>("GET", at`/api/memories/graph?name=${name}&limit=${String(limit)}`),
  show: (id: string) => json<Api.WholeMemory>("GET", at`/api/memories/${id}`),
  setKnown: (id: string, counts: boolean) => json("PUT", at`/api/memories/known/${id}`, { counts }),
  keep: (content: string) => json<{ status: string; id: string }>("POST", "/api/memories", { content }),
};

export const inner = {
  feeling: () => json<Api.Feeling>("GET", "/api/status"),
  writeJournal: () => json<{ message: string }>("POST", "/api/journal/trigger", {}),
  importInto: (kind: "dreams" | "journal", files: File[]) =>
    json<Api.Imported>("POST", `/api/${kind}/import`, form(files)),
  setMood: (mood: string) => json<{ mood: string; mood_value: number }>("POST", "/api/status/mood", { mood }),
};

export const personas = {
  list: () => json<Api.List<Api.Persona>>("GET", "/api/personas"),
  template: () => json<{ content: string }>("GET", "/api/personas/template"),
  add: (file: string) => json<Api.Persona>("POST", "/api/personas", { system_prompt: file }),
  change: (id: string, file: string) => json<Api.Persona>("PUT", at`/api/personas/${id}`, { system_prompt: file }),
  remove: (id: string) => json("DELETE", at`/api/personas/${id}`),
  importCard: (file: File) => json<Api.ImportedPersona>("POST", "/api/personas/import", form([file])),
  versions: (id: string) => json<Api.List<Api.PersonaVersion>>("GET", at`/api/personas/${id}/versions`),
};

export const models = {
  list: () => json<Api.Models>("GET", "/api/models"),
  pull: async (model: string) => events(await request("POST", "/api/models/pull", { model })),
  remove: (name: string) => json("DELETE", at`/api/models/${name}`),
};

export const images = {
  list: (offset: number, limit: number, { q, by, place }: Api.PictureSearch) =>
    json<Api.List<Api.Picture>>("GET", at`/api/images?offset=${String(offset)}&limit=${String(limit)}&q=${q}&by=${by}&place=${place}`),
  models: () => json<Api.List<Api.ImageModel>>("GET", "/api/images/models"),
  draw: async (drawing: Api.Drawing, signal: AbortSignal) =>
    events(await request("POST", "/api/images/generate", drawing, signal)),
  upscale: async (filename: string, signal: AbortSignal) =>
    events(await request("POST", at`/api/images/${filename}/upscale`, undefined, signal)),
  waiting: () => json<Api.List<Api.WaitingPicture>>("GET", "/api/images/waiting"),
  cancel: (number: number) => json("POST", "/api/images/cancel", { number }),
  pin: (filename: string) => json("PUT", at`/api/images/${filename}/pin`),
  unpin: (filename: string) => json("DELETE", at`/api/images/${filename}/pin`),
  addReference: (file: File) => json<{ id: string; url: string }>("POST", "/api/images/upload-reference", form([file])),
  remove: (filename: string) => json("DELETE", at`/api/images/${filename}`),
};

export const voice = {
  status: () => json<Api.VoiceStatus>("GET", "/api/tts/status"),
  speak: (text: string, personaId: string, sampleUrl: string) =>
    json<Api.Speech>("POST", "/api/tts/synthesize", { text, persona_id: personaId, voice_sample_url: sampleUrl }),
  samples: () => json<Api.List<Api.VoiceSample>>("GET", "/api/voice-samples"),
  addSample: (file: File, name: string, consent: string) =>
    json<{ filename: string }>("POST", "/api/voice-samples/upload", form([file], { name, consent })),
  removeSample: (filename: string) => json("DELETE", at`/api/voice-samples/${filename}`),
};

export const system = {
  health: () => json<{ status: string; version: string }>("GET", "/health"),
  ready: () => json<{ status: string }>("GET", "/ready"),
  metrics: async () => (await request("GET", "/metrics")).text(),
  logs: (level: string) => json<Api.List<Api.LogLine>>("GET", at`/api/logs?level=${level}`),
  places: () => json<Api.List<Api.PlatformPlaces>>("GET", "/api/places"),
  changePlace: (id: string, changes: Api.PlaceChanges) => json<{ done: string[] }>("PUT", at`/api/places/${id}`, changes),
  backups: () => json<Api.Backups>("GET", "/api/backups"),
  makeBackup: () => json<Api.Backup>("POST", "/api/backups", {}),
  verifyBackup: (name: string) => json<Api.BackupCheck>("POST", at`/api/backups/${name}/verify`, {}),
  accounts: () => json<Api.List<Api.Account>>("GET", "/api/accounts"),
  removeAccount: (id: string) => json("DELETE", at`/api/accounts/${id}`),
  invite: () => json<Api.Invitation>("POST", "/api/invitations", {}),
  keys: () => json<Api.List<Api.Key>>("GET", "/api/keys"),
  addKey: (name: string, scopes: string[]) => json<Api.NewKey>("POST", "/api/keys", { name, scopes }),
  revokeKey: (id: string) => json("DELETE", at`/api/keys/${id}`),
  grants: () => json<Api.List<Api.Grant>>("GET", "/api/grants"),
  revokeGrant: (id: string) => json("DELETE", at`/api/grants/${id}`),
};
