// The answers of the HTTP interface, as `/api/openapi.json` describes them.

export type List<T> = { items: T[]; total: number };

export type Session = { name: string | null; role: "owner" | "guest" | null; csrf: string | null; awaits_owner: boolean };

export type Chat = {
  id: string;
  title: string;
  group_id: string | null;
  tags: string[];
  current_branch_id: string;
  ai_persona_id: string;
  created_at: string;
  updated_at: string;
};

export type Branch = { id: string; name: string; forked_from_message_id: string | null; created_at: string };

export type Message = { id: string; role: "user" | "assistant"; name: string; content: string; created_at: string; picture: string | null; spoken: boolean };

export type WholeChat = Chat & { branches: Branch[]; messages: Message[] };

export type ChatChanges = { title?: string; group_id?: string | null; tags?: string[]; current_branch_id?: string };

export type Label = { id: string; name: string; color: string | null };

export type Persona = {
  id: string;
  name: string;
  type: "ai" | "user";
  is_user: boolean;
  description: string;
  system_prompt: string;
  version: number;
  updated_at: string;
};

export type PersonaVersion = { version: number; updated_at: string; system_prompt: string };

export type ImportedPersona = { persona: Persona; notes: string[] };

export type Mood = { mood: string | null; mood_value: number | null; energy: number | null };

export type Feeling = Mood & { status: "awake" | "asleep"; is_dreaming: boolean; last_active: string | null };

/** The end of a reply. `ok` says whether a command did what it was asked; it is missing for a reply. */
export type Done = Mood & { message_id: string | null; ok?: boolean };

/** From when until when a memory holds, as days, months or years. */
export type Holding = { holds_since?: string; held_until?: string; replaced_by?: string };

export type Found = { id: string; content: string; score: number; source: string } & Holding;

export type SearchResults = { results: Found[]; total: number; semantic_count: number; lexical_count: number; missing: string[] };

export type Known = {
  id: string;
  content: string;
  author: string;
  scope: string;
  chats: number;
  people: number;
  also: string[];
  said_at: string;
  counts: boolean;
  is_own: boolean;
  own_counts: boolean;
};

export type Relation = {
  said: string;
  other: string;
  is_plain: boolean;
  confidence: number;
  since: string;
  held_until?: string;
  memories: string[];
};

export type Entity = {
  name: string;
  kind: "person" | "place" | "thing" | "project" | null;
  other_names: { name: string; confidence: number }[];
  mentions: number;
  is_cut: boolean;
  total: number;
  relations: Relation[];
};

export type Graph = { entities: Entity[]; further: { name: string; by: string; relation: Relation }[] };

export type WholeMemory = { id: string; content: string; kind: string; author: string; said_at: string } & Holding;

export type Imported = { status: "ok" | "error"; imported: number; skipped: number; errors: string[] };

export type Model = { name: string; size: number; title: string };

export type Models = { models: Model[]; count: number; available: Model[] };

export type Account = { id: string; name: string; role: "owner" | "guest"; created_at: string };

export type Key = { id: string; name: string; scopes: string[]; created_at: string; used_at: string | null };

export type Grant = Key;

export type NewKey = Key & { key: string };

export type Invitation = { code: string; path: string; until: string };

export type Picture = {
  filename: string;
  url: string;
  thumbnail_url: string;
  prompt: string;
  negative_prompt: string | null;
  width: number;
  height: number;
  steps: number;
  seed: number;
  model: string | null;
  chosen_model: string | null;
  sampler: string | null;
  number: number;
  created_at: string;
  pinned: boolean;
  by: string | null;
  place: string | null;
};

/** Which pictures are listed; what is empty lets all of them through. */
export type PictureSearch = { q: string; by: string; place: string };

export type ImageModel = {
  name: string;
  server?: string;
  models: string[];
  samplers: string[];
  max_side: number;
  max_steps: number;
  takes_reference: boolean;
  takes_seed: boolean;
  upscales: boolean;
};

/** What is to be drawn. What is left out is as the operator configured it. */
export type Drawing = {
  prompt: string;
  negative_prompt?: string;
  model?: string;
  sampler?: string;
  width?: number;
  height?: number;
  steps?: number;
  cfg_scale?: number;
  seed?: number;
  reference_image?: string;
  reference_strength?: number;
  persona_id?: string;
};

/** How far a picture is. `total_steps` is 0 while that is not known. */
export type DrawingProgress = {
  number: number;
  state: "waits" | "loading" | "drawing";
  place: number | null;
  downloaded: number | null;
  step: number;
  total_steps: number;
  percentage: number;
  preview?: string;
};

/** A picture that one asked for and that is not drawn yet. */
export type WaitingPicture = DrawingProgress & { prompt: string };

export type VoiceStatus = { available: boolean; why: string | null; hears: boolean; why_deaf: string | null };

export type Speech = { audio_base64: string; format: string; duration_ms: number };

export type VoiceSample = { filename: string; url: string; name: string; consent: string; seconds: number; added_at: string };

export type LogLine = { timestamp: string; level: string; target: string; message: string; fields: Record<string, unknown> };

export type ChatPlace = {
  id: string;
  name: string | null;
  is_private: boolean;
  persona: string;
  invited: string[];
  answers: Answers;
  spoken_replies: SpokenReplies;
  journal: string | null;
};

export type Answers = "addressed" | "always" | "never";

export type SpokenReplies = "auto" | "always" | "never";

/** Changes of a place. What is left out stays. */
export type PlaceChanges = {
  persona?: string;
  invite?: string;
  dismiss?: string;
  answers?: Answers;
  journal_here?: boolean;
  spoken_replies?: SpokenReplies;
};

export type RealmPlaces = { id: string | null; name: string | null; chats: ChatPlace[] };

export type PlatformPlaces = {
  platform: string;
  is_reachable: boolean | null;
  since: string | null;
  last_trouble: { kind: "unreachable" | "closed" | "refused"; at: string } | null;
  invitation: { link: string | null; account: string | null } | null;
  realms: RealmPlaces[];
  direct: number;
  unknown: number;
};

export type Backup = { name: string; created_at: string; messages: number; memories: number; size: number };

export type Backups = List<Backup> & { folder: string; every_minutes: number | null; unreadable: string[] };

export type BackupCheck = { status: "whole" | "files_missing" | "damaged"; missing_files: number };
