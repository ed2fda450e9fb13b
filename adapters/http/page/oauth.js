// The page on which a person gives a program access. Nobody is sent anywhere without a click.
"use strict";

const $ = (id) => document.getElementById(id);
/** Milliseconds for which a person sees the question before they can allow anything. */
const SEEN_MS = 1000;
const state = { csrf: null, timer: null };

/** Sends a request. Throws an error with the server's words if it does not work. */
async function call(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  if (state.csrf) headers["X-CSRF-Token"] = state.csrf;
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const content = await answer.json().catch(() => ({}));
  if (answer.ok) return content;
  throw new Error(content.error || `The server answered ${answer.status}.`);
}

/** Runs something that may fail, and shows why it did. */
async function attempt(work) {
  $("error").textContent = "";
  try {
    await work();
  } catch (error) {
    $("error").textContent = error.message;
  }
}

/** Shows one part of the page. */
function only(part) {
  for (const id of ["status", "login", "consent", "refused"]) $(id).hidden = id !== part;
}

function offer(scope) {
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.name = "scope";
  box.value = scope.scope;
  box.checked = scope.usual;
  box.disabled = scope.fixed;
  const words = document.createElement("span");
  words.textContent = ` ${scope.words}`;
  label.append(box, words);
  return label;
}

/** Locks "Allow" for a moment. A second click that was meant for another page then allows nothing. */
function lock() {
  $("allow").disabled = true;
  clearTimeout(state.timer);
  state.timer = setTimeout(() => ($("allow").disabled = false), SEEN_MS);
}

async function ask(session) {
  state.csrf = session.csrf;
  only("none");
  const request = await call("GET", `/api/oauth/request${location.search}`);
  if (request.refusal) {
    $("error").textContent = `${request.name} asks for something that it cannot have: ${request.refusal}`;
    $("back").href = request.back;
    $("back").textContent = `Return to ${request.returns_to}`;
    return only("refused");
  }
  $("who").textContent = session.name;
  $("program").textContent = request.name;
  $("place").textContent = request.returns_to;
  $("scopes").replaceChildren(...request.scopes.map(offer));
  only("consent");
  lock();
  $("deny").focus();
}

async function decide(allow) {
  const boxes = [...document.querySelectorAll("input[name=scope]")];
  const scopes = allow ? boxes.filter((box) => box.checked).map((box) => box.value) : [];
  const request = Object.fromEntries(new URLSearchParams(location.search));
  const decided = await call("POST", "/api/oauth/decision", { request, scopes });
  location.replace(decided.location);
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const login = { name: $("name").value, password: $("password").value };
    const session = await call("POST", "/api/login", login);
    $("password").value = "";
    await ask(session);
  });
});

$("consent").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!$("allow").disabled) attempt(() => decide(true));
});

// The page may have been hidden behind another one until now.
addEventListener("focus", lock);
document.addEventListener("visibilitychange", lock);

$("deny").addEventListener("click", () => attempt(() => decide(false)));

attempt(async () => {
  const session = await call("GET", "/api/session");
  if (session.name) return ask(session);
  only("login");
  $("name").focus();
});
