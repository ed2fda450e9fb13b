// Who is logged in. A session that ends leaves the pages as they are, so that nothing typed is lost.

import { session as api } from "./api";
import { useSession } from "./http";
import type { Session } from "./types";

export type Link = { kind: "setup" | "join"; code: string };

/** Returns the link that the address holds, and takes it out of the browser's history. */
function linkInAddress(): Link | null {
  const found = /^#(setup|join)=([\w-]+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname);
  return { kind: found[1] as Link["kind"], code: found[2] ?? "" };
}

class SessionState {
  /** Whether the server was asked. */
  known = $state(false);
  /** The account whose pages are shown; empty before the first login. */
  name = $state("");
  role = $state<Session["role"]>(null);
  awaitsOwner = $state(false);
  /** Whether the session ended while its pages are shown. */
  ended = $state(false);
  link = $state<Link | null>(null);

  get isOwner(): boolean {
    return this.role === "owner";
  }

  /** Whether the form to log in is to be shown. */
  get asks(): boolean {
    return this.known && (!this.name || this.ended || this.link !== null);
  }

  async load(): Promise<void> {
    this.link = linkInAddress();
    addEventListener("hashchange", () => (this.link = linkInAddress() ?? this.link));
    const found = await api.show();
    this.awaitsOwner = found.awaits_owner;
    if (found.csrf) this.begin(found);
    this.known = true;
  }

  begin(found: Session): void {
    this.link = null;
    this.ended = false;
    this.awaitsOwner = found.awaits_owner;
    this.name = found.name ?? "";
    this.role = found.role;
    useSession(found.csrf, () => (this.ended = true));
  }

  async logIn(name: string, password: string): Promise<void> {
    const { link } = this;
    const found = link ? await api.enter(link.kind, link.code, name, password) : await api.logIn(name, password);
    // Somebody else starts with an empty page.
    if (this.name && this.name !== found.name) this.leave();
    else this.begin(found);
  }

  /** Logs out, and forgets everything that the pages hold. */
  async logOut(wish: { everywhere?: boolean; keys?: boolean } = {}): Promise<void> {
    await api.logOut(wish);
    this.leave();
  }

  leave(): void {
    location.hash = "";
    location.reload();
  }
}

export const session = new SessionState();
