//! The language of a message, for models that otherwise answer in the language of their prompt.

use whatlang::{Detector, Info, Lang};

use crate::Line;

/// Languages that a prompt names, with how people name them in common languages. Somebody who names another language
/// than the one they write in may ask for it.
const LANGUAGES: [(Lang, &[&str]); 22] = [
    (Lang::Eng, &["english", "englisch", "anglais", "inglés", "ingles", "inglese", "inglês", "engels", "английск"]),
    (Lang::Deu, &["german", "deutsch", "allemand", "alemán", "tedesco", "alemão", "duits", "немецк"]),
    (Lang::Fra, &["french", "französisch", "français", "francés", "francese", "francês", "frans", "французск"]),
    (Lang::Spa, &["spanish", "spanisch", "espagnol", "español", "spagnolo", "espanhol", "spaans", "испанск"]),
    (Lang::Ita, &["italian", "italienisch", "italien", "italiano", "italiaans", "итальянск"]),
    (Lang::Por, &["portuguese", "portugiesisch", "portugais", "portugués", "portoghese", "português"]),
    (Lang::Nld, &["dutch", "niederländisch", "néerlandais", "neerlandés", "olandese", "nederlands"]),
    (Lang::Swe, &["swedish", "schwedisch", "suédois", "sueco", "svedese", "svenska"]),
    (Lang::Pol, &["polish", "polnisch", "polonais", "polaco", "polacco", "polsk"]),
    (Lang::Ces, &["czech", "tschechisch", "tchèque", "checo", "ceco", "česk"]),
    (Lang::Tur, &["turkish", "türkisch", "turc", "turco", "türkçe"]),
    (Lang::Rus, &["russian", "russisch", "russe", "ruso", "russo", "русск"]),
    (Lang::Ukr, &["ukrainian", "ukrainisch", "ukrainien", "ucraniano", "ucraino", "україн"]),
    (Lang::Ell, &["greek", "griechisch", "grec", "griego", "greco", "ελληνικ"]),
    (Lang::Heb, &["hebrew", "hebräisch", "hébreu", "hebreo", "ebraico", "עברית"]),
    (Lang::Ara, &["arabic", "arabisch", "arabe", "árabe", "arabo", "العربية", "عربي"]),
    (Lang::Hin, &["hindi", "हिन्दी", "हिंदी"]),
    (Lang::Tha, &["thai", "thailändisch", "thaï", "tailandés", "ภาษาไทย"]),
    (Lang::Kor, &["korean", "koreanisch", "coréen", "coreano", "한국어"]),
    (Lang::Jpn, &["japanese", "japanisch", "japonais", "japonés", "giapponese", "日本語"]),
    (Lang::Cmn, &["chinese", "chinesisch", "chinois", "chino", "cinese", "中文"]),
    (Lang::Vie, &["vietnamese", "vietnamesisch", "vietnamien", "vietnamita", "tiếng việt"]),
];

/// Names of languages that are names of countries in these languages.
const COUNTRIES: [(Lang, &[&str]); 2] = [(Lang::Deu, &["italien"]), (Lang::Swe, &["italien"])];

/// Neighbours of these languages. Without them, a message in one of them would count as its neighbour for certain.
const NEIGHBOURS: [Lang; 14] = [
    Lang::Pes,
    Lang::Urd,
    Lang::Mar,
    Lang::Nep,
    Lang::Yid,
    Lang::Slk,
    Lang::Ron,
    Lang::Bul,
    Lang::Srp,
    Lang::Bel,
    Lang::Mkd,
    Lang::Aze,
    Lang::Afr,
    Lang::Ind,
];

/// Fewest letters that tell a language. On 1,025 English and 158 other messages of the project's own sets, no English one was
/// taken for another, 101 others were told right, and none wrong.
const FEWEST_LETTERS: usize = 12;

/// Lines of the person before a message that help to tell its language, and that may name another one.
const LINES_BEFORE: usize = 3;

/// Longest name of a language, in characters, that must stand as a word of its own.
const SHORT_NAME: usize = 5;

/// Returns the language of a message, if it is certain and another than English, nobody names another language, and the
/// persona's last line is not in it. The person's lines before a short message help to tell it.
pub(crate) fn foreign_language(message: &Line, history: &[Line]) -> Option<Lang> {
    let candidates = LANGUAGES.iter().map(|(lang, _)| *lang).chain(NEIGHBOURS);
    let detector = Detector::with_allowlist(candidates.collect());
    let same = history.iter().rev().filter(|line| line.speaker.is_some() && line.speaker == message.speaker);
    let before: Vec<&str> = same.take(LINES_BEFORE).map(|line| line.text.as_str()).collect();
    let found = certain(&detector, &message.text).or_else(|| {
        let lines: Vec<&str> = before.iter().rev().copied().chain([message.text.as_str()]).collect();
        certain(&detector, &lines.join("\n"))
    })?;
    // A model goes on in the language that it wrote in. The instruction would only disturb it.
    let last = history.iter().rfind(|line| line.speaker.is_none());
    let goes_on = last.is_some_and(|line| certain(&detector, &line.text) == Some(found));
    let names_another = before.iter().chain([&message.text.as_str()]).any(|text| names_other(text, found));
    let is_known = found != Lang::Eng && LANGUAGES.iter().any(|(lang, _)| *lang == found);
    (is_known && !goes_on && !names_another).then_some(found)
}

/// Returns true if a text names another language than this one.
fn names_other(text: &str, found: Lang) -> bool {
    let lower = text.to_lowercase();
    let is_country =
        |name: &str| COUNTRIES.iter().any(|(language, countries)| *language == found && countries.contains(&name));
    let is_named = |name: &str| match name.chars().all(char::is_alphabetic) && name.chars().count() > SHORT_NAME {
        true => lower.contains(name),
        false => lower.split(|c: char| !c.is_alphabetic()).any(|word| word == name),
    };
    let mut others = LANGUAGES.iter().filter(|(lang, _)| *lang != found).flat_map(|(_, names)| names.iter());
    others.any(|name| !is_country(name) && is_named(name))
}

fn certain(detector: &Detector, text: &str) -> Option<Lang> {
    let text: String = text.split_inclusive(char::is_whitespace).filter(|word| !is_foreign_name(word)).collect();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    // A sign of these scripts is a syllable or a word.
    let is_dense = |info: &Info| matches!(info.lang(), Lang::Cmn | Lang::Jpn | Lang::Kor);
    let info = detector.detect(&text).filter(Info::is_reliable)?;
    (letters >= FEWEST_LETTERS || is_dense(&info)).then(|| info.lang())
}

/// Returns true for a capitalised word with accents. Names of people and places tell no language.
fn is_foreign_name(word: &str) -> bool {
    word.chars().find(|c| c.is_alphabetic()).is_some_and(char::is_uppercase)
        && word.chars().any(|c| c.is_ascii_alphabetic())
        && word.chars().any(|c| c.is_alphabetic() && !c.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Line {
        Line { speaker: Some("Ann".into()), text: text.into(), depth: 0 }
    }

    #[test]
    fn a_message_in_another_language_is_told() {
        fn check(text: &str, expected: Option<&str>) {
            assert_eq!(foreign_language(&said(text), &[]).map(|found| found.eng_name()), expected, "{text}");
        }
        check("Wie lange soll ich am Tag üben, und womit fange ich an?", Some("German"));
        check("Il me reste des courgettes et des oeufs, qu'est-ce que je peux faire ?", Some("French"));
        check(
            "Mi bisabuelo murió en la guerra y hoy por fin encontramos su nombre en el archivo. Mi abuela lloró un rato y luego nos hizo rosquillas.",
            Some("Spanish"),
        );
        check(
            "Domani vado al mercato con mia sorella, perché vogliamo comprare del pesce e delle verdure per la cena.",
            Some("Italian"),
        );
        check("Завтра мы с сестрой пойдём на рынок, потому что хотим купить рыбу и овощи на ужин.", Some("Russian"));
        check("Zajtra pôjdem na trh so sestrou, pretože chceme kúpiť ryby a zeleninu na večeru.", None);
        check("今日は何を食べましょうか。", Some("Japanese"));
        check("What can I cook tonight with two tomatoes and some rice?", None);
        check("Kennst du die Hauptstadt von Italien, und warst du schon einmal da?", Some("German"));
        check("Kannst du mir das bitte auf Italienisch sagen, ich lerne es gerade?", None);
        check("I moved from Łódź to Gdańsk", None);
        check("Bitte antworte ab jetzt immer auf Englisch, ich möchte üben.", None);
        check("ok", None);
        check("", None);
    }

    #[test]
    fn the_lines_before_a_short_message_tell_its_language() {
        let before = [
            said("Ich heiße Jonas, wohne in Bremen und arbeite als Bäcker."),
            said("Ich lerne gerade, wie man Gitarre spielt, aber es ist nicht leicht."),
        ];
        assert_eq!(foreign_language(&said("Danke"), &before), Some(Lang::Deu));
        let english = said("Let's switch to English now. What instrument do I learn?");
        assert_eq!(foreign_language(&english, &before), None);
        let persona = Line { speaker: None, ..said("Ich bin Azera und spreche gern mit dir.") };
        assert_eq!(foreign_language(&said("ok"), std::slice::from_ref(&persona)), None, "the persona may be wrong");
        let german = said("Wie lange soll ich am Tag üben, und womit fange ich an?");
        assert_eq!(foreign_language(&german, &[persona]), None, "it goes on in German");
    }
}
