// The list of one's chats, with groups and tags.

import { chats as api, labels, type LabelKind } from "./api";
import type { Chat, ChatChanges, Label, WholeChat } from "./types";

/** How many chats are looked at after something was said. */
const NEWEST = 30;

class ChatList {
  items = $state<Chat[]>([]);
  groups = $state<Label[]>([]);
  tags = $state<Label[]>([]);
  loaded = $state(false);
  /** The words of a search; empty for all chats. */
  words = $state("");
  found = $state<string[] | null>(null);

  /** The chats that are listed: all, or those that a search found. */
  get shown(): Chat[] {
    const { found } = this;
    return found ? this.items.filter((chat) => found.includes(chat.id)) : this.items;
  }

  async load(): Promise<void> {
    const [chats, groups, tags] = await Promise.all([api.list(), labels.list("groups"), labels.list("tags")]);
    this.items = chats.items;
    this.groups = groups.items;
    this.tags = tags.items;
    this.loaded = true;
  }

  async reload(): Promise<void> {
    this.items = (await api.list()).items;
  }

  /** Takes in what was said since the list was loaded. Only the newest chats are asked for: there may be thousands. */
  async refresh(): Promise<void> {
    const newest = (await api.newest(NEWEST)).items;
    const ids = new Set(newest.map((chat) => chat.id));
    this.items = [...newest, ...this.items.filter((chat) => !ids.has(chat.id))];
  }

  async search(words: string): Promise<void> {
    this.words = words.trim();
    const sought = this.words;
    const found = sought ? (await api.search(sought)).items.map((chat) => chat.id) : null;
    // Another search may have begun meanwhile.
    if (sought === this.words) this.found = found;
  }

  async create(title?: string): Promise<WholeChat> {
    const chat = await api.create(title);
    this.items = [chat, ...this.items];
    return chat;
  }

  async change(id: string, changes: ChatChanges): Promise<WholeChat> {
    const changed = await api.change(id, changes);
    this.items = this.items.map((chat) => (chat.id === id ? { ...chat, ...summary(changed) } : chat));
    return changed;
  }

  async remove(id: string): Promise<void> {
    await api.remove(id);
    this.items = this.items.filter((chat) => chat.id !== id);
  }

  async addLabel(kind: LabelKind, name: string): Promise<Label> {
    const label = await labels.create(kind, name);
    this[kind] = [...this[kind], label];
    return label;
  }

  async removeLabel(kind: LabelKind, id: string): Promise<void> {
    await labels.remove(kind, id);
    this[kind] = this[kind].filter((label) => label.id !== id);
    await this.reload();
  }
}

function summary({ branches: _branches, messages: _messages, ...chat }: WholeChat): Chat {
  return chat;
}

export const chatList = new ChatList();
