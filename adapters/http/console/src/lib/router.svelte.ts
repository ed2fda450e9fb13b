// The page that the address names: `#/memory`, or `#/chat/ID`.

export type Route = { page: string; rest: string };

function parsed(): Route {
  const [page = "", rest = ""] = location.hash.replace(/^#\/?/, "").split("/", 2);
  return { page: page || "chat", rest: decodeURIComponent(rest) };
}

class Router {
  route = $state<Route>(parsed());

  constructor() {
    addEventListener("hashchange", () => (this.route = parsed()));
  }

  go(page: string, rest = ""): void {
    location.hash = href(page, rest);
  }
}

/** Returns the address of a page. */
export function href(page: string, rest = ""): string {
  return rest ? `#/${page}/${encodeURIComponent(rest)}` : `#/${page}`;
}

export const router = new Router();
