//! Tags of languages (BCP 47, <https://www.rfc-editor.org/rfc/rfc5646>).

/// Returns a tag in its usual form, such as `de-AT` or `zh-Hans-CN`; `None` for what is none. Extensions and tags for private
/// use choose no voice, so they are refused.
pub(crate) fn language_tag(text: &str) -> Option<String> {
    let mut subtags = text.split('-').peekable();
    let is_word = |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let language = subtags.next().filter(is_word).filter(|text| matches!(text.len(), 2 | 3))?;
    let mut tag = language.to_ascii_lowercase();
    if let Some(script) = subtags.next_if(|text| text.len() == 4 && is_word(text)) {
        let (first, rest) = script.split_at(1);
        tag.push_str(&format!("-{}{}", first.to_ascii_uppercase(), rest.to_ascii_lowercase()));
    }
    let is_code = |text: &&str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(region) = subtags.next_if(|text| (text.len() == 2 && is_word(text)) || is_code(text)) {
        tag.push_str(&format!("-{}", region.to_ascii_uppercase()));
    }
    for variant in subtags {
        let is_plain = variant.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_variant = match variant.len() {
            4 => variant.starts_with(|c: char| c.is_ascii_digit()),
            length => (5..=8).contains(&length),
        };
        if !is_plain || !is_variant {
            return None;
        }
        tag.push_str(&format!("-{}", variant.to_ascii_lowercase()));
    }
    Some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_get_their_usual_form_and_nothing_else_is_one() {
        for (text, tag) in [
            ("en", "en"),
            ("DE-at", "de-AT"),
            ("zh-hANS-cn", "zh-Hans-CN"),
            ("es-419", "es-419"),
            ("de-CH-1996", "de-CH-1996"),
            ("ca-valencia", "ca-valencia"),
            ("yue", "yue"),
        ] {
            assert_eq!(language_tag(text).as_deref(), Some(tag), "{text}");
        }
        for text in
            ["", "e", "german", "de_AT", "de-", "-de", "de-A", "d3", "de-AT-AT", "x-own", "de-u-co", "dé", "auto"]
        {
            assert_eq!(language_tag(text), None, "{text}");
        }
    }
}
