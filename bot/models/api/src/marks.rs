//! The marks that chat templates put around thinking and turns. A server or a small model may write them as text.

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Begins a thinking block.
    Open,
    /// Begins a thinking block at the beginning of a reply. Elsewhere it is text.
    OpenFirst,
    /// Ends a thinking block.
    Close,
    /// Ends a thinking block that [`Mark::OpenFirst`] began. Elsewhere it is text.
    CloseFirst,
    /// Begins the name of a channel, as in `<|channel|>analysis<|message|>`.
    Channel,
    /// Begins the text of a channel.
    Message,
    /// Begins a turn; the name of the role follows.
    Turn,
    /// Ends a turn.
    End,
    /// Another special token.
    Other,
}

/// The result of looking for a mark.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The text begins with no mark.
    Nothing,
    /// The text may be the beginning of a mark.
    Undecided,
    /// The text begins with a mark of this many bytes.
    Mark(Mark, usize),
}

/// The known marks. Those in brackets are compared exactly, all others without regard to case.
const MARKS: &[(&str, Mark)] = &[
    ("<think>", Mark::Open),
    ("<thinking>", Mark::Open),
    ("[THINK]", Mark::Open),
    ("<seed:think>", Mark::Open),
    ("<|START_THINKING|>", Mark::Open),
    ("<|begin_of_thought|>", Mark::Open),
    ("<|channel>", Mark::Open),
    ("<thought>", Mark::OpenFirst),
    ("<reasoning>", Mark::OpenFirst),
    ("</think>", Mark::Close),
    ("</thinking>", Mark::Close),
    ("[/THINK]", Mark::Close),
    ("</seed:think>", Mark::Close),
    ("<|END_THINKING|>", Mark::Close),
    ("<|end_of_thought|>", Mark::Close),
    ("<channel|>", Mark::Close),
    ("</thought>", Mark::CloseFirst),
    ("</reasoning>", Mark::CloseFirst),
    ("<|channel|>", Mark::Channel),
    ("<|message|>", Mark::Message),
    ("<|im_start|>", Mark::Turn),
    ("<|start|>", Mark::Turn),
    ("<|start_header_id|>", Mark::Turn),
    ("<|header_start|>", Mark::Turn),
    ("<|start_of_role|>", Mark::Turn),
    ("<|START_OF_TURN_TOKEN|>", Mark::Turn),
    ("<|turn>", Mark::Turn),
    ("<start_of_turn>", Mark::Turn),
    ("<|user|>", Mark::Turn),
    ("<|system|>", Mark::Turn),
    ("<|assistant|>", Mark::Turn),
    ("<\u{ff5c}User\u{ff5c}>", Mark::Turn),
    ("<\u{ff5c}Assistant\u{ff5c}>", Mark::Turn),
    ("[INST]", Mark::Turn),
    ("<|im_end|>", Mark::End),
    ("<|eot_id|>", Mark::End),
    ("<|eom_id|>", Mark::End),
    ("<|eot|>", Mark::End),
    ("<|endoftext|>", Mark::End),
    ("<|end_of_text|>", Mark::End),
    ("<|end_of_turn|>", Mark::End),
    ("<|END_OF_TURN_TOKEN|>", Mark::End),
    ("<|END_RESPONSE|>", Mark::End),
    ("<|end|>", Mark::End),
    ("<|return|>", Mark::End),
    ("<|call|>", Mark::End),
    ("<turn|>", Mark::End),
    ("<end_of_turn>", Mark::End),
    ("<eos>", Mark::End),
    ("<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>", Mark::End),
    ("[/INST]", Mark::Other),
    ("<bos>", Mark::Other),
    ("<pad>", Mark::Other),
    ("<unk>", Mark::Other),
];

/// Ends a turn in Llama 2 and Mistral, and struck-out text in HTML.
const SLASH_S: &str = "</s>";

/// The most characters in a special token of an unknown name.
const MAX_NAME_CHARS: usize = 48;

/// Looks for a mark at the beginning of `text`. `is_whole` is true if no more text can follow.
pub(crate) fn mark_at(text: &str, is_whole: bool) -> Found {
    let mut undecided = false;
    for (name, mark) in MARKS {
        if begins(text, name) {
            return Found::Mark(*mark, name.len());
        }
        undecided |= text.len() < name.len() && begins(name, text);
    }
    let found = match slash_s(text, is_whole) {
        Found::Nothing => unknown(text),
        found => found,
    };
    match found {
        Found::Nothing if undecided => decided(Found::Undecided, is_whole),
        found => decided(found, is_whole),
    }
}

fn decided(found: Found, is_whole: bool) -> Found {
    if is_whole && found == Found::Undecided { Found::Nothing } else { found }
}

/// Returns true if `text` begins with `start`.
fn begins(text: &str, start: &str) -> bool {
    let exact = start.starts_with('[');
    let head = text.get(..start.len());
    head.is_some_and(|head| if exact { head == start } else { head.eq_ignore_ascii_case(start) })
}

/// Looks for `</s>`. It is a mark if only the end of the reply or another mark follows.
fn slash_s(text: &str, is_whole: bool) -> Found {
    if text.len() < SLASH_S.len() && SLASH_S.starts_with(text) {
        return Found::Undecided;
    }
    let Some(rest) = text.strip_prefix(SLASH_S) else { return Found::Nothing };
    let rest = rest.trim_start();
    match rest {
        "" if !is_whole => Found::Undecided,
        "" => Found::Mark(Mark::End, SLASH_S.len()),
        _ if rest.starts_with("[INST]") || rest.starts_with("<|") || rest.starts_with("<s>") => {
            Found::Mark(Mark::End, SLASH_S.len())
        }
        _ if ["[INST]", "<|", "<s>"].iter().any(|mark| mark.starts_with(rest)) => Found::Undecided,
        _ => Found::Nothing,
    }
}

/// Looks for a special token of an unknown name, such as `<|fim_pad|>`.
fn unknown(text: &str) -> Found {
    for bar in ['|', '\u{ff5c}'] {
        let Some(name) = text.strip_prefix('<').and_then(|rest| rest.strip_prefix(bar)) else { continue };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.' | '\u{2581}');
        let length: usize = name.chars().take(MAX_NAME_CHARS + 1).take_while(|c| is_name(*c)).map(char::len_utf8).sum();
        let rest = name.get(length..).unwrap_or_default();
        if name.get(..length).unwrap_or_default().chars().count() > MAX_NAME_CHARS {
            return Found::Nothing;
        }
        let mut after = rest.chars();
        return match (after.next(), after.next()) {
            (None, _) => Found::Undecided,
            (Some(next), None) if next == bar => Found::Undecided,
            (Some(next), Some('>')) if next == bar && length > 0 => {
                Found::Mark(Mark::Other, 1 + 2 * bar.len_utf8() + length + 1)
            }
            _ => Found::Nothing,
        };
    }
    Found::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_whole_or_undecided() {
        for (name, mark) in MARKS {
            assert_eq!(mark_at(&format!("{name}rest"), false), Found::Mark(*mark, name.len()), "{name}");
            for (cut, _) in name.char_indices().skip(1) {
                let (head, _) = name.split_at(cut);
                assert_eq!(mark_at(head, false), Found::Undecided, "{head}");
                assert_eq!(mark_at(head, true), Found::Nothing, "{head}");
            }
        }
    }

    #[test]
    fn other_texts_are_no_marks() {
        for text in
            ["<b>bold</b>", "<| f", "<|>", "<||>", "[think]", "[1]", "<thinker>", "</s>till", "</strike>", "<|a b|>"]
        {
            assert_eq!(mark_at(text, false), Found::Nothing, "{text}");
        }
        assert_eq!(mark_at("<THINK>", false), Found::Mark(Mark::Open, 7));
        assert_eq!(mark_at("<|fim_pad|>x", false), Found::Mark(Mark::Other, 11));
        assert_eq!(mark_at("<\u{ff5c}tool\u{2581}x\u{ff5c}>", false), Found::Mark(Mark::Other, 16));
        assert_eq!(mark_at("</s> \n", false), Found::Undecided);
        assert_eq!(mark_at("</s> \n", true), Found::Mark(Mark::End, 4));
        assert_eq!(mark_at("</s> [INST] no", false), Found::Mark(Mark::End, 4));
    }
}
