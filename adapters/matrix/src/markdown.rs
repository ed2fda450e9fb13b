//! Converts Markdown to HTML that clients render safely, and splits long texts.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Bytes of one part of a text. An event may have 65,536. An edit in an encrypted room contains the text four times
/// (Markdown and HTML, for old and new clients), enlarged by a third.
pub(crate) const PART_BYTES: usize = 8_000;

/// URL schemes that may be linked, as recommended by Matrix.
const SCHEMES: [&str; 5] = ["https:", "http:", "ftp:", "mailto:", "magnet:"];

/// Returns the HTML of a text; `None` if it is plain text. HTML in the text is escaped: the text comes from a model,
/// which may repeat what people write.
pub(crate) fn to_html(text: &str) -> Option<String> {
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES;
    let mut plain = true;
    let mut paragraphs = 0;
    // Links that are left out, with their texts kept; they can be nested.
    let mut unlinked = Vec::new();
    let events = Parser::new_ext(text, options).filter_map(|event| {
        match &event {
            Event::Start(Tag::Paragraph) => paragraphs += 1,
            Event::End(TagEnd::Paragraph) | Event::Text(_) => {}
            _ => plain = false,
        }
        Some(match event {
            Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
            // In a chat, a line end is intended.
            Event::SoftBreak => Event::HardBreak,
            Event::Start(Tag::Link { ref dest_url, .. }) => {
                let out = !may_link(dest_url);
                unlinked.push(out);
                return (!out).then_some(event);
            }
            Event::End(TagEnd::Link) => return (unlinked.pop() == Some(false)).then_some(event),
            // Clients load pictures from the homeserver only; other servers would learn who reads.
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
            other => other,
        })
    });
    let mut written = String::new();
    html::push_html(&mut written, events.map(escaped_code));
    if plain && paragraphs <= 1 {
        return None;
    }
    let written = written.trim_end();
    // A single paragraph needs no margins.
    let inner = written.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
    Some(inner.filter(|inner| !inner.contains("<p>")).unwrap_or(written).to_owned())
}

fn may_link(address: &CowStr<'_>) -> bool {
    let lower = address.to_lowercase();
    SCHEMES.iter().any(|scheme| lower.starts_with(scheme))
}

/// Drops the language of a code block unless it is a plain word, because it becomes part of an attribute.
fn escaped_code(event: Event<'_>) -> Event<'_> {
    use pulldown_cmark::CodeBlockKind::{Fenced, Indented};
    match event {
        Event::Start(Tag::CodeBlock(Fenced(language)))
            if !language.chars().all(|c| c.is_ascii_alphanumeric() || "+-#_".contains(c)) =>
        {
            Event::Start(Tag::CodeBlock(Indented))
        }
        other => other,
    }
}

/// Splits a text into parts of at most `limit` bytes, preferably between paragraphs, then lines, sentences, words. A
/// code block that is cut is closed and opened again. When a text grows, its earlier parts stay the same.
pub(crate) fn parts(text: &str, limit: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.to_owned();
    while rest.len() > limit {
        // Space for the fences of a cut code block.
        let room = limit.saturating_sub(FENCE_BYTES);
        let window = rest.get(..rest.floor_char_boundary(room)).unwrap_or_default();
        let cut = cut(window);
        if cut == 0 {
            break;
        }
        let (head, tail) = rest.split_at(cut);
        let (mut part, mut next) = (head.trim_end().to_owned(), tail.trim_start_matches('\n').to_owned());
        if let Some(fence) = open_fence(&part) {
            let mark: String = fence.chars().take_while(|c| *c == '`' || *c == '~').collect();
            next = format!("{fence}\n{next}");
            part = format!("{part}\n{mark}");
        }
        parts.push(part);
        rest = next;
    }
    if !rest.trim().is_empty() || parts.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Bytes reserved in a part for the closing fence.
const FENCE_BYTES: usize = 16;

/// Longest fence with its language that is repeated in the next part, in characters.
const MAX_FENCE: usize = 40;

/// Returns the position of the cut. It is in the second half of the window, if possible.
fn cut(window: &str) -> usize {
    let from = window.len() / 2;
    let behind = |mark: &str| window.rfind(mark).map(|at| at + mark.len()).filter(|at| *at > from);
    ["\n\n", "\n", ". ", " "].into_iter().find_map(behind).unwrap_or(window.len())
}

/// Returns the fence, with its language, of a code block that is still open at the end.
fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<&str> = None;
    for line in text.lines().map(str::trim_start) {
        let marks = |mark: char| line.chars().take_while(|c| *c == mark).count();
        match open {
            None if marks('`') >= 3 || marks('~') >= 3 => open = Some(line),
            Some(fence) => {
                let mark = fence.chars().next().unwrap_or('`');
                let width = fence.chars().take_while(|c| *c == mark).count();
                if marks(mark) >= width && line.trim_end().chars().all(|c| c == mark) {
                    open = None;
                }
            }
            None => {}
        }
    }
    open.map(|fence| fence.trim_end().chars().take(MAX_FENCE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_html_and_html_stays_text() {
        #[track_caller]
        fn check(text: &str, want: Option<&str>) {
            assert_eq!(to_html(text).as_deref(), want, "{text:?}");
        }
        check("just words & signs", None);
        check("a *word*", Some("a <em>word</em>"));
        check("one\ntwo", Some("one<br />\ntwo"));
        check("one\n\ntwo", Some("<p>one</p>\n<p>two</p>"));
        check("<script>alert(1)</script>", Some("&lt;script&gt;alert(1)&lt;/script&gt;"));
        check("a <b onclick=x>c</b>", Some("a &lt;b onclick=x&gt;c&lt;/b&gt;"));
        check("[here](javascript:alert(1))", Some("here"));
        check("[here](https://a.b/?c=\"d\")", Some("<a href=\"https://a.b/?c=%22d%22\">here</a>"));
        check("![cat](https://a.b/cat.png)", Some("cat"));
        check(
            "```rust\nlet x = 1 < 2;\n```",
            Some("<pre><code class=\"language-rust\">let x = 1 &lt; 2;\n</code></pre>"),
        );
        check("```\"><b>\nx\n```", Some("<pre><code>x\n</code></pre>"));
    }

    #[test]
    fn long_texts_are_cut_between_paragraphs_and_code_continues_in_a_block() {
        #[track_caller]
        fn check(text: &str, limit: usize, want: &[&str]) {
            assert_eq!(parts(text, limit), want, "{text:?}");
        }
        check("short", 40, &["short"]);
        check("", 40, &[""]);
        check(
            "one two three four\n\nfive six seven eight nine",
            40,
            &["one two three four", "five six seven eight nine"],
        );
        check(
            "aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
            40,
            &["aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],
        );
        let code = "```rs\nlet a = 1;\nlet b = 2;\nlet c = 3;\nlet d = 4;\n```";
        check(code, 40, &["```rs\nlet a = 1;\n```", "```rs\nlet b = 2;\n```", "```rs\nlet c = 3;\nlet d = 4;\n```"]);
    }

    #[test]
    fn a_growing_text_keeps_its_parts() {
        let text: String =
            (0..3_000).map(|number| format!("word{number} {}", if number % 40 == 0 { "\n\n" } else { "" })).collect();
        let whole = parts(&text, 900);
        for end in (0..text.len()).step_by(487) {
            let so_far = parts(text.get(..end).unwrap(), 900);
            let settled = so_far.len().saturating_sub(1);
            assert_eq!(so_far[..settled], whole[..settled]);
        }
        assert!(whole.iter().all(|part| part.len() <= 900));
    }
}
