//! Calls by names in scripts without spaces between words, such as 澪 and 小雪. This module does no I/O.

use super::speech::Speech;
use super::vocative::is_unspaced;

/// Greetings before or after a name.
const GREETINGS: [&str; 22] = [
    "おはようございます",
    "おはよう",
    "こんにちは",
    "こんばんは",
    "おやすみ",
    "ありがとう",
    "もしもし",
    "ねえ",
    "ねぇ",
    "やあ",
    "你好",
    "您好",
    "早上好",
    "晚上好",
    "早安",
    "晚安",
    "谢谢",
    "謝謝",
    "嗨",
    "嘿",
    "안녕하세요",
    "안녕",
];

/// Endings of a name when somebody is called.
const HONORIFICS: [&str; 17] = [
    "ちゃん",
    "さん",
    "くん",
    "君",
    "様",
    "さま",
    "先生",
    "先輩",
    "せんぱい",
    "酱",
    "醬",
    "小姐",
    "姐姐",
    "哥哥",
    "야",
    "아",
    "씨",
];

/// Words for "you", which show that the name before them is a call.
const YOU: [&str; 4] = ["你", "您", "请", "請"];

/// Returns true if a message calls the name. The name stands at the beginning, with a mark, a space or "you" behind it,
/// or at the end, behind a mark, a space or a greeting.
pub(super) fn calls(speech: &Speech, name: &[String]) -> bool {
    let whole = joined(speech);
    // The parts of a name may have a space or a dot between them.
    ["", " ", "・"].map(|gap| name.join(gap)).iter().any(|name| {
        begins_with_call(&whole, name) || ends_with_call(&whole, name) || whole.contains(&format!("@{name}"))
    })
}

/// Returns the message in lower case, from its first to its last letter.
fn joined(speech: &Speech) -> String {
    let mut whole = String::new();
    for (at, word) in speech.lower.iter().enumerate() {
        if at > 0 || speech.gap(0).ends_with('@') {
            let gap = speech.gap(at);
            whole.push_str(if at == 0 { "@" } else { gap });
        }
        whole.push_str(word);
    }
    whole
}

fn begins_with_call(whole: &str, name: &str) -> bool {
    let mut rest = whole;
    loop {
        if let Some(after) = rest.strip_prefix(name) {
            let after = HONORIFICS.iter().find_map(|ending| after.strip_prefix(ending)).unwrap_or(after);
            let joined = after.chars().next().is_some_and(char::is_alphanumeric);
            if !joined || YOU.iter().any(|you| after.starts_with(you)) {
                return true;
            }
        }
        let Some(after) = GREETINGS.iter().find_map(|greeting| rest.strip_prefix(greeting)) else { return false };
        rest = after.trim_start_matches(|c: char| !c.is_alphanumeric());
    }
}

fn ends_with_call(whole: &str, name: &str) -> bool {
    let bare = HONORIFICS.iter().find_map(|ending| whole.strip_suffix(ending).filter(|rest| rest.ends_with(name)));
    let Some(before) = bare.unwrap_or(whole).strip_suffix(name) else { return false };
    let Some(last) = before.chars().next_back() else { return true };
    let marked = before.trim_end().chars().next_back().is_some_and(|c| !c.is_alphanumeric());
    // Korean puts spaces between words, so a space sets nothing apart there.
    let spaced = last.is_whitespace() && before.chars().any(is_unspaced) && !before.chars().any(is_korean);
    marked || spaced || GREETINGS.iter().any(|greeting| before.trim_end().ends_with(greeting))
}

fn is_korean(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7FF}')
}
