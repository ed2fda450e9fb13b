// Keys that work everywhere on the page.

export type Shortcut = { keys: string; does: () => void };

/** Returns the name of the keys that an event stands for, such as `Ctrl+K`. Apple's Command counts as Ctrl. */
function keysOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
  return [event.ctrlKey || event.metaKey ? "Ctrl" : "", event.altKey ? "Alt" : "", key].filter(Boolean).join("+");
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Listens for shortcuts. Those without Ctrl or Alt are silent while somebody types. Returns what ends that. */
export function listen(shortcuts: Shortcut[]): () => void {
  const onkeydown = (event: KeyboardEvent): void => {
    const keys = keysOf(event);
    const found = shortcuts.find((shortcut) => shortcut.keys === keys);
    const isPlain = !keys.includes("+") || keys === "+";
    if (!found || event.isComposing || document.querySelector("dialog[open]") || (isPlain && isTyping(event.target))) return;
    event.preventDefault();
    found.does();
  };
  addEventListener("keydown", onkeydown);
  return () => removeEventListener("keydown", onkeydown);
}
