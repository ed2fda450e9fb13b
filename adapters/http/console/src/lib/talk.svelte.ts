// The open chat: its messages, the reply that comes in, and what can be done with a message.

import { aloud } from "./aloud.svelte";
import { chats, command, say, sayAloud } from "./api";
import { chatList } from "./chats.svelte";
import { t } from "./en";
import { Problem, type ServerEvent } from "./http";
import { type Mind, parseMind } from "./mind";
import { attempt, inWords, notices } from "./notices.svelte";
import type { Done, Message, WholeChat } from "./types";

/** A message as the page shows it. Notes are commands and their answers, which no chat keeps. */
export type Shown = {
  key: string;
  id: string | null;
  role: "user" | "assistant" | "note";
  name: string;
  content: string;
  thinking: string;
  at: string;
  /** The address of the picture that it shows. */
  picture: string | null;
  /** Whether it was said aloud. */
  spoken: boolean;
  /** The id of the last message before it when it was added. */
  after: string | null;
};

/** A picture to show: its name on the machine, and its bytes as a `data:` URL. */
export type Attached = { name: string; url: string };

/** A recording, and the name of who spoke. */
type Spoken = { sound: Blob; myName: string };

/** What became of the reply that the page waits for. */
export type Waiting = "no" | "reply" | "lost" | "stopped";

/** Longest title that is made of a chat's first message, in characters. */
const TITLE_CHARS = 48;

/** Time between two looks for a reply whose stream broke off, in milliseconds, and how often to look. */
const LOOK_MS = 1500;
const LOOKS = 120;

/** The commands after which a picture comes. */
const DRAWS = /^\/(imagine|picture (again|vary))\b/;

const pause = (ms: number): Promise<void> => new Promise((go) => setTimeout(go, ms));

function titleOf(text: string): string {
  const line = (text.trim().split("\n")[0] ?? "").replace(/[*_`#>]/g, "").trim();
  const chars = [...line];
  return chars.length > TITLE_CHARS ? `${chars.slice(0, TITLE_CHARS - 1).join("").trimEnd()}…` : line;
}

class Talk {
  chat = $state<WholeChat | null>(null);
  messages = $state<Shown[]>([]);
  waiting = $state<Waiting>("no");
  mind = $state<Mind | null>(null);
  /** What is typed. It stays when the session ends. */
  draft = $state("");
  /** The pictures that the next message shows. */
  attached = $state<Attached[]>([]);
  /** The persona for the chat that the first message begins. */
  wantedPersona = $state("");
  /** What was said aloud while a reply comes. It is sent after the reply. */
  held = $state<Spoken | null>(null);

  private aborter: AbortController | null = null;
  private thoughts = new Map<string, string>();
  private nextKey = 0;

  get busy(): boolean {
    return this.waiting === "reply";
  }

  /** Number of pictures that are shown. */
  private get pictures(): number {
    return this.messages.filter((message) => message.picture).length;
  }

  /** The last reply, for which there can be other answers. */
  get lastReply(): Shown | undefined {
    return this.messages.findLast((message) => message.role === "assistant" && message.id);
  }

  /** Shows another chat, or none. */
  async open(id: string | null): Promise<void> {
    if (id === (this.chat?.id ?? null)) return;
    this.aborter?.abort();
    this.aborter = null;
    this.waiting = "no";
    this.messages = [];
    this.chat = null;
    if (!id) return;
    const chat = await chats.show(id);
    this.take(chat);
    void this.feel();
  }

  /** Loads the chat anew. Notes stay where they are. */
  async reload(): Promise<void> {
    const id = this.chat?.id;
    if (!id) return;
    const chat = await chats.show(id);
    if (this.chat?.id === id) this.take(chat);
  }

  /** Something happened in a chat, or in any of them. A reply that the page waits for comes by its own stream. */
  async heard(id: string | null): Promise<void> {
    if (this.waiting === "no" && (id === null || id === this.chat?.id)) await this.reload();
  }

  private take(chat: WholeChat): void {
    const ids = new Set(chat.messages.map((message) => message.id));
    const notes = this.messages.filter((message) => message.role === "note");
    const after = (id: string | null): Shown[] => notes.filter((note) => note.after === id);
    // The message before a note may be gone.
    const loose = notes.filter((note) => note.after !== null && !ids.has(note.after));
    const kept = chat.messages.flatMap((message) => [this.shown(message), ...after(message.id)]);
    this.chat = chat;
    this.messages = [...after(null), ...kept, ...loose];
  }

  private shown(message: Message): Shown {
    const { id, role, name, content, picture, spoken } = message;
    const thinking = this.thoughts.get(id) ?? "";
    return { key: id, id, role, name, content, thinking, at: message.created_at, picture, spoken, after: null };
  }

  private add(role: Shown["role"], name: string, content: string): Shown {
    const key = `new-${this.nextKey++}`;
    const after = this.messages.findLast((message) => message.id)?.id ?? null;
    this.messages.push({ key, id: null, role, name, content, thinking: "", at: new Date().toISOString(), picture: null, spoken: false, after });
    // The element of the state, not the object that was given: changes of it are shown.
    return this.messages[this.messages.length - 1] as Shown;
  }

  /** Says something. The first message begins a chat. */
  async send(text: string, myName: string, pictures: Attached[] = []): Promise<void> {
    if (this.busy || !(text.trim() || pictures.length)) return;
    const isCommand = text.startsWith("/");
    const chat = await this.begun(isCommand ? undefined : titleOf(text));
    const persona = this.newPersona(chat);
    const shown = pictures.length ? { pictures: pictures.map(({ url }) => url) } : {};
    const said = { chat_id: chat.id, message: text, ...shown, ...(persona ? { ai_persona_id: persona } : {}) };
    const asked = this.add(isCommand ? "note" : "user", myName, text);
    if (!isCommand) asked.picture = pictures[0]?.url ?? null;
    await this.follow(chat, (signal) => say(said, signal), asked, pictures);
    if (!isCommand && text.trim()) await this.nameAfter(chat, text);
  }

  /** Says something aloud, after the reply that the page waits for. */
  async sendAloud(sound: Blob, myName: string): Promise<void> {
    if (this.busy) {
      this.held = { sound, myName };
      return;
    }
    const chat = await this.begun();
    const persona = this.newPersona(chat);
    const asked = this.add("user", myName, t.aloud.listening);
    asked.spoken = true;
    await this.follow(chat, (signal) => sayAloud(chat.id, sound, persona, signal), asked);
    const heard = this.messages.findLast((message) => message.spoken && message.id);
    if (heard) await this.nameAfter(chat, heard.content);
  }

  /** The wait for a reply in a chat is over: sends what was said aloud meanwhile, even if another chat is open by now. */
  private sendHeld(chat: WholeChat | null): void {
    const held = this.held;
    if (!held) return;
    this.held = null;
    void attempt(async () => {
      if (!chat || this.chat?.id === chat.id) return this.sendAloud(held.sound, held.myName);
      // The chat shows the reply when it is opened again.
      for await (const _ of sayAloud(chat.id, held.sound, ""));
    });
  }

  /** Returns the open chat, or a new one. From now on the page waits for a reply. */
  private async begun(title?: string): Promise<WholeChat> {
    this.waiting = "reply";
    try {
      if (!this.chat) await this.begin(title);
    } catch (error) {
      this.waiting = "no";
      this.sendHeld(null);
      throw error;
    }
    return this.chat as WholeChat;
  }

  private async begin(title?: string): Promise<void> {
    const chat = await chatList.create(title);
    this.chat = chat;
    history.replaceState(null, "", `#/chat/${chat.id}`);
  }

  /** Returns the persona that is to answer from now on; empty if it stays. */
  private newPersona(chat: WholeChat): string {
    return this.wantedPersona === chat.ai_persona_id ? "" : this.wantedPersona;
  }

  /** Names a chat without a title after what was said. */
  private async nameAfter(chat: WholeChat, text: string): Promise<void> {
    if (chat.title === t.chat.newTitle) await attempt(() => chatList.change(chat.id, { title: titleOf(text) }));
  }

  /** Asks, and shows the reply as it comes. */
  private async follow(
    chat: WholeChat,
    open: (signal: AbortSignal) => AsyncGenerator<ServerEvent>,
    asked: Shown,
    attached: Attached[] = [],
  ): Promise<void> {
    const aborter = new AbortController();
    this.aborter = aborter;
    const pictures = this.pictures;
    const reply = this.add("assistant", t.chat.answering, "");
    let begun = false;
    try {
      let done: Done | null = null;
      for await (const { name, data } of open(aborter.signal)) {
        begun = true;
        const content = String(data.content ?? "");
        if (name === "thinking") reply.thinking += content;
        else if (name === "content") reply.content += content;
        else if (name === "heard") [asked.content, asked.id] = [String(data.text), String(data.message_id)];
        else if (name === "retracted" && data.withdrawn) reply.content = "";
        else if (name === "retracted") [reply.thinking, reply.content] = [reply.thinking + reply.content, ""];
        else if (name === "done") done = data as unknown as Done;
      }
      if (this.aborter !== aborter) return;
      if (!done) throw new Problem(t.problem.unreachable, 0, "broken");
      await this.finish(done, reply);
      if (done.ok && DRAWS.test(asked.content)) void this.waitForPicture(chat, pictures);
    } catch (error) {
      if (this.aborter === aborter) await this.failed(error, begun, asked, reply, attached);
    } finally {
      this.sendHeld(chat);
    }
  }

  private async finish(done: Done, reply: Shown): Promise<void> {
    this.waiting = "no";
    if (done.message_id) {
      this.thoughts.set(done.message_id, reply.thinking);
      reply.id = done.message_id;
    } else {
      reply.role = "note";
    }
    this.wantedPersona = "";
    await attempt(() => this.reload());
    void this.feel();
    void attempt(() => chatList.refresh());
    const spoken = this.messages.find((message) => message.id === done.message_id);
    if (spoken && done.message_id && aloud.speaksReplies && aloud.status?.available) {
      void aloud.play(done.message_id, spoken.content, this.chat?.ai_persona_id ?? "");
    }
  }

  /** A reply did not come to its end: it was refused, or the connection broke. */
  private async failed(error: unknown, begun: boolean, asked: Shown, reply: Shown, attached: Attached[]): Promise<void> {
    const refused = error instanceof Problem && (error.status > 0 || error.code === "reply");
    const drop = (...gone: Shown[]): void => {
      const keys = gone.map((message) => message.key);
      this.messages = this.messages.filter((message) => !keys.includes(message.key));
    };
    if (refused || !begun) {
      this.waiting = "no";
      // Nothing came of it, so the words go back to where they can be sent again.
      drop(asked, reply);
      // A recording without words cannot be sent again.
      if (!this.draft && (!asked.spoken || asked.id)) this.draft = asked.content;
      if (!this.attached.length) this.attached = attached;
      if (!(error instanceof Problem && error.status === 401)) notices.fail(error);
      await this.reload().catch(() => undefined);
      return;
    }
    this.waiting = "lost";
    await this.wait(reply);
  }

  /** Looks for a reply that goes on without its stream, until it is there. */
  private async wait(reply: Shown): Promise<void> {
    const chat = this.chat;
    for (let look = 0; look < LOOKS && chat && this.chat === chat; look++) {
      await pause(LOOK_MS);
      const found = await chats.show(chat.id).catch(() => null);
      if (this.chat !== chat || (this.waiting !== "lost" && this.waiting !== "stopped")) return;
      if (found?.messages.at(-1)?.role !== "assistant") continue;
      this.waiting = "no";
      this.take(found);
      return;
    }
    if (this.chat !== chat) return;
    this.waiting = "no";
    reply.role = "note";
    reply.content = t.chat.noReply;
  }

  /** Looks for the picture of a command until it is there, which begins a message of its own. */
  private async waitForPicture(chat: WholeChat, before: number): Promise<void> {
    for (let look = 0; look < LOOKS && this.chat?.id === chat.id && this.pictures <= before; look++) {
      await pause(LOOK_MS);
      if (this.chat?.id === chat.id && !this.busy) await this.reload().catch(() => undefined);
    }
  }

  /** Stops to show the reply. The server finishes it. */
  stop(): void {
    const { aborter } = this;
    if (!this.busy || !aborter) return;
    this.aborter = null;
    aborter.abort();
    this.waiting = "stopped";
    const reply = this.messages.at(-1);
    if (reply) void this.wait(reply);
  }

  /** Runs a command about a message, and shows the chat as it is afterwards. Returns the command's answer. */
  async perform(line: string, about?: Shown): Promise<string> {
    const chat = this.chat;
    if (!chat) return "";
    const answer = await command(line, { chat_id: chat.id, ...(about?.id ? { about: about.id } : {}) });
    await this.reload();
    return answer;
  }

  /** Lets the persona answer again. The answer before stays, one swipe away. */
  async regenerate(): Promise<void> {
    const { chat, lastReply: last } = this;
    if (this.busy || !last) return;
    this.waiting = "reply";
    try {
      await this.perform("/regenerate", last);
    } finally {
      this.waiting = "no";
      void this.feel();
      this.sendHeld(chat);
    }
  }

  /** Goes on from before a message, on a branch of its own, with other words. */
  async edit(message: Shown, text: string, myName: string): Promise<void> {
    const before = this.messages[this.messages.indexOf(message) - 1];
    if (!before?.id || this.busy) return;
    const taken = this.chat?.branches.map((branch) => branch.name) ?? [];
    let number = 1;
    while (taken.includes(t.chat.branchName(number))) number++;
    await this.perform(`/branch ${t.chat.branchName(number)}`, before);
    await this.send(text, myName);
  }

  async switchBranch(id: string): Promise<void> {
    const chat = this.chat;
    if (chat) this.take(await chatList.change(chat.id, { current_branch_id: id }));
  }

  /** Changes title, group or tags. */
  async change(changes: Parameters<typeof chatList.change>[1]): Promise<void> {
    const chat = this.chat;
    if (chat) this.take(await chatList.change(chat.id, changes));
  }

  async usePersona(id: string): Promise<void> {
    if (!this.chat) {
      this.wantedPersona = id;
      return;
    }
    await this.perform(`/persona use ${id}`);
    void this.feel();
  }

  /** Reads how the persona feels. A failure leaves the bars away. */
  private async feel(): Promise<void> {
    const id = this.chat?.id;
    if (!id) return;
    const answer = await command("/status", { chat_id: id }).catch((error: unknown) => inWords(error));
    const mind = parseMind(answer);
    if (this.chat?.id === id) this.mind = mind.bars.length ? mind : null;
  }
}

export const talk = new Talk();
