// The chat page. Everything that people or personas wrote goes into the page as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const state = { csrf: null, chat: null, busy: false, link: null };

/** Sends a request. Throws an error with the server's words if it does not work. */
async function call(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  if (state.csrf) headers["X-CSRF-Token"] = state.csrf;
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  if (answer.status === 401 && state.csrf) enter("Your session has ended.");
  throw new Error(problem.error || `The server answered ${answer.status}.`);
}

const json = async (method, path, body) => (await call(method, path, body)).json();

/** Runs something that may fail, and shows why it did. */
async function attempt(work, where = "status") {
  $(where).textContent = "";
  try {
    return await work();
  } catch (error) {
    $(where).textContent = error.message;
    return undefined;
  }
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Shows the form that logs in, or makes an account by a link. */
function enter(why) {
  state.csrf = null;
  const found = /^#(setup|join)=([\w-]+)$/.exec(location.hash);
  state.link = found ? { path: `/api/${found[1]}`, code: found[2] } : null;
  // The code is of no use in the browser's history.
  if (found) history.replaceState(null, "", "/");
  $("app").hidden = true;
  $("enter").hidden = false;
  $("enter-why").textContent = state.link ? "Make your account. The password has at least ten characters." : why;
  $("enter-button").textContent = state.link ? "Make the account" : "Log in";
  $("password").autocomplete = state.link ? "new-password" : "current-password";
  $("name").focus();
}

async function begin(session) {
  state.csrf = session.csrf;
  $("enter").hidden = true;
  $("app").hidden = false;
  $("who").textContent = session.name;
  $("password").value = "";
  const personas = await json("GET", "/api/personas");
  const choices = personas.items.filter((one) => !one.is_user).map((one) => option(one.id, one.name));
  $("persona").replaceChildren(option("", "The usual persona"), ...choices);
  await listChats();
  if (state.chat) await showChat(state.chat);
  $("text").focus();
}

function option(value, text) {
  const made = element("option", text);
  made.value = value;
  return made;
}

async function listChats(chosen) {
  const chats = (await json("GET", "/api/chats")).items;
  const known = chats.some((chat) => chat.id === (chosen || state.chat));
  state.chat = known ? chosen || state.chat : chats.length ? chats[0].id : null;
  const label = (chat) => `${chat.title} (${new Date(chat.updated_at).toLocaleString()})`;
  $("chats").replaceChildren(...chats.map((chat) => option(chat.id, label(chat))));
  $("chats").value = state.chat || "";
  $("delete").disabled = !state.chat;
  if (!state.chat) $("messages").replaceChildren(element("p", "Say something to begin a chat."));
}

async function showChat(id) {
  const chat = await json("GET", `/api/chats/${encodeURIComponent(id)}`);
  state.chat = id;
  $("why").hidden = true;
  $("messages").replaceChildren();
  for (const message of chat.messages) show(message.role, message.name, message.content);
  if (!chat.messages.length) $("messages").append(element("p", "Say something to begin."));
}

function show(role, name, text) {
  const article = element("article", undefined, role);
  const body = element("div", undefined, "body");
  showMarkdown(body, text);
  article.append(element("h2", name), body);
  $("messages").append(article);
  article.scrollIntoView({ block: "end" });
  return body;
}

/** Reads server-sent events from an answer, and calls `take` with the name and the data of each. */
async function events(answer, take) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.split("\n").find((line) => line.startsWith(name))?.slice(name.length).trim();
      const data = field("data:");
      if (data) take(field("event:"), JSON.parse(data));
    }
  }
}

/** Says something in the present chat, and calls `take` for each event of the reply. */
async function say(message, take) {
  const body = { chat_id: state.chat, message };
  let failure = null;
  await events(await call("POST", "/api/chat/stream", body), (name, data) => {
    if (name === "error") failure = data.message;
    else take(name, data);
  });
  if (failure) throw new Error(failure);
}

async function send() {
  const text = $("text").value.trim();
  if (!text || state.busy) return;
  state.busy = true;
  $("send").disabled = true;
  $("status").textContent = "";
  try {
    if (!state.chat) await newChat();
    show("user", $("who").textContent, text);
    $("text").value = "";
    const body = show("assistant", "…", "");
    let said = "";
    let part = null;
    await say(text, (name, data) => {
      if (name === "thinking" || name === "content") {
        body.className = name === "thinking" ? "body thinking" : "body";
        if (part !== name) said = "";
        part = name;
        said += data.content;
        showMarkdown(body, said);
        body.scrollIntoView({ block: "end" });
      } else if (name === "retracted") {
        said = "";
        body.replaceChildren();
      } else if (name === "done" && data.mood) {
        $("status").textContent = `Mood: ${data.mood}, energy ${Math.round(data.energy * 100)} %`;
      }
    });
    const mood = $("status").textContent;
    await showChat(state.chat);
    if (!body.isConnected && text.startsWith("/")) show("assistant", "Azera", said);
    $("status").textContent = mood;
  } catch (error) {
    $("status").textContent = error.message;
    if (!$("text").value) $("text").value = text;
  } finally {
    state.busy = false;
    $("send").disabled = false;
    $("text").focus();
  }
}

async function newChat() {
  const chat = await json("POST", "/api/chats", { title: `Chat of ${new Date().toLocaleString()}` });
  const persona = $("persona").value;
  state.chat = chat.id;
  if (persona && persona !== chat.ai_persona_id) await say(`/persona use ${persona}`, () => {});
  await listChats(chat.id);
  await showChat(chat.id);
}

/** Runs a command in the present chat, and returns its answer. */
async function command(line) {
  let answer = "";
  await say(line, (name, data) => {
    if (name === "content") answer += data.content;
  });
  return answer;
}

$("enter-form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const given = { name: $("name").value, password: $("password").value };
    const body = state.link ? { code: state.link.code, ...given } : given;
    await begin(await json("POST", state.link ? state.link.path : "/api/login", body));
  }, "enter-error");
});
$("say").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
$("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
$("new").addEventListener("click", () => attempt(newChat));
$("chats").addEventListener("change", () => attempt(() => showChat($("chats").value)));
$("delete").addEventListener("click", () => attempt(async () => {
  if (!state.chat || !confirm("Delete this chat, and forget everything that was said in it?")) return;
  await call("DELETE", `/api/chats/${encodeURIComponent(state.chat)}`);
  state.chat = null;
  await listChats();
  if (state.chat) await showChat(state.chat);
}));
$("ask-why").addEventListener("click", () => attempt(async () => {
  if (!state.chat) return;
  showMarkdown($("why-text"), await command("/why"));
  $("why").hidden = false;
  $("why-close").focus();
}));
$("why-close").addEventListener("click", () => {
  $("why").hidden = true;
  $("text").focus();
});
$("forget").addEventListener("click", () => attempt(async () => {
  if (!state.chat || !confirm("Forget the last message that you wrote here, and the replies that rest on it?")) return;
  const receipt = await command("/forget last quotes");
  await showChat(state.chat);
  $("status").textContent = receipt;
}));
$("leave").addEventListener("click", () => attempt(async () => {
  await call("POST", "/api/logout", {});
  enter("You are logged out.");
}));
window.addEventListener("hashchange", () => location.hash && enter(""));

attempt(async () => {
  const session = await json("GET", "/api/session");
  if (session.csrf && !location.hash) return begin(session);
  enter(session.awaits_owner ? "Nobody owns this Azera yet. `azera web` prints the link that makes your account." : "");
}, "enter-error");
