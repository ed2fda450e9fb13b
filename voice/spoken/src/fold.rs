//! Brings characters that mean the same to one form.

use unicode_normalization::UnicodeNormalization;

use crate::table::tables;

/// Folds wide, styled and composed forms. Superscripts stay: the rules tell powers from numbers by them.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if let Some(fraction) = tables().fractions.get(c.encode_utf8(&mut [0; 4])) {
            if out.ends_with(|c: char| c.is_ascii_digit()) {
                out.push(' ');
            }
            out.push_str(fraction);
            continue;
        }
        match c {
            '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '⁻' | '…' | '™' | 'º' | 'µ' | '℃' | '℉' | '№' => {
                out.push(c)
            }
            '\u{fe0f}' | '\u{fe0e}' | '\u{20e3}' | '\u{200b}' | '\u{feff}' | '\u{ad}' | '\u{2060}' => {}
            '\u{a0}' | '\u{202f}' | '\u{2009}' => out.push(' '),
            '\u{2044}' => out.push('/'),
            _ if c.is_ascii() => out.push(c),
            _ => match other_digit(c) {
                Some(digit) => out.push(digit),
                None => out.extend(std::iter::once(c).nfkc().filter(|c| !c.is_control())),
            },
        }
    }
    out.nfc().collect()
}

/// Returns the ASCII digit of a decimal digit in another script. Unicode keeps each script's digits in one row.
fn other_digit(c: char) -> Option<char> {
    const ZEROS: [u32; 12] = [0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xe50, 0x0f20];
    let code = u32::from(c);
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}
