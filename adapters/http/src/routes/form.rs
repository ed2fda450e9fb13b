//! Forms with one file.

use axum::extract::Multipart;
use axum::extract::multipart::MultipartError;
use axum::http::StatusCode;

use crate::problem::Problem;

/// The name of the file in a form.
const FILE: &str = "file";

/// Longest text beside the file, in bytes.
const MAX_TEXT_BYTES: usize = 1_024;

/// Most texts beside the file.
const MAX_TEXTS: usize = 8;

/// Longest plain name, in characters.
const MAX_PLAIN_CHARS: usize = 30;

/// A file that somebody sent, with the texts beside it.
pub(super) struct UploadedFile {
    pub(super) bytes: Vec<u8>,
    /// Its name on the sender's machine; empty if that is not said.
    pub(super) name: String,
    /// Its media type, as the sender says.
    pub(super) media_type: Option<String>,
    texts: Vec<(String, String)>,
}

impl UploadedFile {
    /// Returns a text of the form; `None` if it is missing or empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.texts.iter().find(|(named, _)| named == name);
        found.map(|(_, text)| text.trim()).filter(|text| !text.is_empty())
    }
}

/// Returns the one file of a form.
pub(super) async fn one_file(mut form: Multipart, most: usize) -> Result<UploadedFile, Problem> {
    let wrong = |error: MultipartError| Problem::invalid(error.body_text());
    let (mut file, mut texts) = (None, Vec::new());
    while let Some(field) = form.next_field().await.map_err(wrong)? {
        let named = field.name().unwrap_or_default().to_owned();
        let file_name = field.file_name().map(str::to_owned);
        let media_type = field.content_type().map(str::to_owned);
        let bytes = field.bytes().await.map_err(wrong)?;
        if named == FILE {
            if file.is_some() {
                return Err(Problem::invalid("Send one file at a time."));
            }
            file = Some((bytes, file_name.unwrap_or_default(), media_type));
        } else if texts.len() < MAX_TEXTS && bytes.len() <= MAX_TEXT_BYTES {
            texts.push((named, String::from_utf8_lossy(&bytes).into_owned()));
        } else {
            return Err(Problem::invalid(format!("`{FILE}` is the file. Other parts have at most 1 KB.")));
        }
    }
    let missing = || Problem::invalid(format!("Send the file as the part `{FILE}` of `multipart/form-data`."));
    let (bytes, name, media_type) = file.ok_or_else(missing)?;
    if bytes.len() > most {
        let detail = format!("The file has more than {} MB.", most >> 20);
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
    }
    Ok(UploadedFile { bytes: bytes.to_vec(), name, media_type, texts })
}

/// Returns a name of letters of ASCII in lower case, digits and `-`; `otherwise` if nothing of the text is left.
pub(super) fn plain_name(text: &str, otherwise: &str) -> String {
    let plain: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(MAX_PLAIN_CHARS).collect();
    let name = name.trim_end_matches('-');
    if name.is_empty() { otherwise.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_leads_nowhere_and_breaks_no_header() {
        for (text, want) in [
            ("My Sunset.final", "my-sunset-final"),
            ("../../etc/passwd", "etc-passwd"),
            ("a\r\nX-Evil: 1", "a-x-evil-1"),
            ("\"; filename=\"b", "filename-b"),
            ("Закат", "picture"),
            ("---", "picture"),
        ] {
            assert_eq!(plain_name(text, "picture"), want, "{text:?}");
        }
        assert_eq!(plain_name(&"ab ".repeat(50), "picture").len(), 29);
    }
}
