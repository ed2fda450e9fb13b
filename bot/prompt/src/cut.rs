//! Shortens a message that is too long for a prompt.

/// Cuts the middle out of a text of more than `room` tokens, because a question is mostly at the beginning or the end.
pub(crate) fn cut_middle(text: &str, room: usize, count: &dyn Fn(&str) -> usize) -> String {
    if count(text) <= room {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut keep = chars.len();
    loop {
        keep = keep * 3 / 4;
        let head: String = chars.iter().take(keep / 2).collect();
        let tail: String = chars.iter().skip(chars.len() - keep / 2).collect();
        let cut = format!("{head} [...] {tail}");
        if count(&cut) <= room || keep < 8 {
            return cut;
        }
    }
}
