// Shows Markdown as elements. Everything becomes text nodes; nothing that somebody wrote is ever read as HTML.
"use strict";

/**
 * Inline marks of at most 400 characters: code, bold, italic. Longer ones would cost too much time. Links stay text, because
 * a reply must not hide where one leads.
 */
const INLINE = /`([^`\n]{1,400})`|\*\*(?=\S)(.{1,400}?)(?<=\S)\*\*|(?<![\w*])[*_](?=\S)([^*_\n]{1,400}?)(?<=\S)[*_](?![\w*])/;

function inline(into, text) {
  let rest = text;
  for (let found; (found = INLINE.exec(rest)); rest = rest.slice(found.index + found[0].length)) {
    into.append(rest.slice(0, found.index));
    const [, code, bold, italic] = found;
    const mark = document.createElement(code !== undefined ? "code" : bold !== undefined ? "strong" : "em");
    if (code !== undefined) mark.textContent = code;
    else inline(mark, bold ?? italic);
    into.append(mark);
  }
  into.append(rest);
}

/** Replaces what `into` shows by a text in Markdown: fenced code, headings, lists and paragraphs. */
function showMarkdown(into, text) {
  into.replaceChildren();
  let list = null;
  let code = null;
  const add = (tag, content) => {
    const made = document.createElement(tag);
    if (content !== undefined) inline(made, content);
    into.append(made);
    return made;
  };
  for (const line of text.split("\n")) {
    if (/^\s*```/.test(line)) {
      code = code ? null : add("pre");
      list = null;
      continue;
    }
    if (code) {
      code.append(`${line}\n`);
      continue;
    }
    const item = /^\s*(?:[-*]|(\d{1,9})[.)])\s+(.*)$/.exec(line);
    if (item) {
      const tag = item[1] === undefined ? "ul" : "ol";
      if (!list || list.localName !== tag) {
        list = add(tag);
        if (item[1] !== undefined) list.start = Number(item[1]);
      }
      inline(list.appendChild(document.createElement("li")), item[2]);
      continue;
    }
    list = null;
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    if (heading) add("strong", heading[1]).className = "heading";
    else if (line.trim()) add("p", line);
  }
}
