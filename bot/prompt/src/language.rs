//! The language of a message, for models that otherwise answer in the language of their prompt.

use whatlang::{Detector, Info, Lang};

use crate::Line;

/// Languages that are told apart. More would make short messages less certain.
const LANGUAGES: [Lang; 22] = [
    Lang::Eng,
    Lang::Deu,
    Lang::Fra,
    Lang::Spa,
    Lang::Ita,
    Lang::Por,
    Lang::Nld,
    Lang::Swe,
    Lang::Pol,
    Lang::Ces,
    Lang::Tur,
    Lang::Rus,
    Lang::Ukr,
    Lang::Ell,
    Lang::Heb,
    Lang::Ara,
    Lang::Hin,
    Lang::Tha,
    Lang::Kor,
    Lang::Jpn,
    Lang::Cmn,
    Lang::Vie,
];

/// Fewest letters that tell a language.
const FEWEST_LETTERS: usize = 12;

/// Lines before a short message that help to tell its language.
const LINES_BEFORE: usize = 3;

/// Returns the name of the language of a message in English, if it is certain and another than English, and the persona's
/// last line is not in it. The person's lines before a short message help to tell it.
pub(crate) fn foreign_language(message: &Line, history: &[Line]) -> Option<&'static str> {
    let detector = Detector::with_allowlist(LANGUAGES.to_vec());
    let found = certain(&detector, &message.text).or_else(|| {
        let same = history.iter().rev().filter(|line| line.speaker.is_some() && line.speaker == message.speaker);
        let mut lines: Vec<&str> = same.take(LINES_BEFORE).map(|line| line.text.as_str()).collect();
        lines.reverse();
        lines.push(&message.text);
        certain(&detector, &lines.join("\n"))
    })?;
    // A model goes on in the language that it wrote in. The instruction would only disturb it.
    let last = history.iter().rfind(|line| line.speaker.is_none());
    let goes_on = last.is_some_and(|line| certain(&detector, &line.text) == Some(found));
    (found != Lang::Eng && !goes_on).then(|| found.eng_name())
}

fn certain(detector: &Detector, text: &str) -> Option<Lang> {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    // A sign of these scripts is a syllable or a word.
    let is_dense = |info: &Info| matches!(info.lang(), Lang::Cmn | Lang::Jpn | Lang::Kor);
    let info = detector.detect(text).filter(Info::is_reliable)?;
    (letters >= FEWEST_LETTERS || is_dense(&info)).then(|| info.lang())
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
            assert_eq!(foreign_language(&said(text), &[]), expected, "{text}");
        }
        check("Wie lange soll ich am Tag üben, und womit fange ich an?", Some("German"));
        check("Il me reste des courgettes et des oeufs, qu'est-ce que je peux faire ?", Some("French"));
        check("¿Qué puedo cocinar esta noche con dos tomates y un poco de arroz?", Some("Spanish"));
        check("Cosa posso cucinare stasera con due pomodori e un po' di riso?", Some("Italian"));
        check("Что мне приготовить сегодня вечером?", Some("Russian"));
        check("今日は何を食べましょうか。", Some("Japanese"));
        check("What can I cook tonight with two tomatoes and some rice?", None);
        check("ok", None);
        check("", None);
    }

    #[test]
    fn the_lines_before_a_short_message_tell_its_language() {
        let before = [said("Ich heiße Jonas und wohne in Bremen."), said("Ich lerne gerade Gitarre spielen.")];
        assert_eq!(foreign_language(&said("Danke"), &before), Some("German"));
        let english = said("Let's switch to English now. What instrument do I learn?");
        assert_eq!(foreign_language(&english, &before), None);
        let persona = Line { speaker: None, ..said("Ich bin Azera und spreche gern mit dir.") };
        assert_eq!(foreign_language(&said("ok"), std::slice::from_ref(&persona)), None, "the persona may be wrong");
        let german = said("Wie lange soll ich am Tag üben, und womit fange ich an?");
        assert_eq!(foreign_language(&german, &[persona]), None, "it goes on in German");
    }
}
