// The pages. Each is a file of its own, which the browser loads when the page is opened.

import type { Component } from "svelte";
import { t } from "./en";

/** A page may take the `part` of the address that names something in it. */
type Module = { default: Component<any> };

export type Page = { id: string; title: string; load: () => Promise<Module>; isForOwners?: boolean };

const CHAT: Page = { id: "chat", title: t.page.chat, load: () => import("../pages/chat/ChatPage.svelte") };

const PAGES: Page[] = [
  CHAT,
  { id: "memory", title: t.page.memory, load: () => import("../pages/memory/MemoryPage.svelte") },
  { id: "inner", title: t.page.inner, load: () => import("../pages/inner/InnerPage.svelte") },
  { id: "personas", title: t.page.personas, load: () => import("../pages/personas/PersonasPage.svelte") },
  { id: "models", title: t.page.models, load: () => import("../pages/models/ModelsPage.svelte") },
  { id: "images", title: t.page.images, load: () => import("../pages/images/ImagesPage.svelte") },
  { id: "voice", title: t.page.voice, load: () => import("../pages/voice/VoicePage.svelte") },
  { id: "learning", title: t.page.learning, load: () => import("../pages/learning/LearningPage.svelte") },
  { id: "places", title: t.page.places, load: () => import("../pages/places/PlacesPage.svelte"), isForOwners: true },
  { id: "privacy", title: t.page.privacy, load: () => import("../pages/privacy/PrivacyPage.svelte") },
  { id: "system", title: t.page.system, load: () => import("../pages/system/SystemPage.svelte") },
];

/** Modules that were loaded, so that a page is not loaded again when it is shown again. */
const loaded = new Map<string, Promise<Module>>();

/** Returns a page; the chat for an unknown one. */
export function pageFor(id: string): Page {
  const page = PAGES.find((page) => page.id === id) ?? CHAT;
  return {
    ...page,
    load: () => {
      const module = loaded.get(page.id) ?? page.load();
      loaded.set(page.id, module);
      module.catch(() => loaded.delete(page.id));
      return module;
    },
  };
}

/** Returns the pages that an account may open. */
export function visiblePages(isOwner: boolean): Page[] {
  return PAGES.filter((page) => isOwner || !page.isForOwners);
}
