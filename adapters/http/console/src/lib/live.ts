// What happens in one's chats while the page is open: replies that another device asked for, pictures, check-ins.

import { chatList } from "./chats.svelte";
import { talk } from "./talk.svelte";

/** Follows the events of the account until the returned function is called. The browser connects again by itself. */
export function followEvents(): () => void {
  const source = new EventSource("/api/events");
  const heard = (event: MessageEvent<string>): void => {
    const { chat_id } = JSON.parse(event.data) as { chat_id: string };
    const list = event.type === "removed" ? chatList.reload() : chatList.refresh();
    void Promise.all([talk.heard(chat_id), list]).catch(() => undefined);
  };
  for (const name of ["message", "changed", "removed"]) source.addEventListener(name, heard);
  source.addEventListener("reset", () => void Promise.all([talk.heard(null), chatList.reload()]).catch(() => undefined));
  return () => source.close();
}
