//! Since when a statement says that it holds: May for "I have lived in Hull since May".
//!
//! A wrong time is worse than none. So the statement has to be one clause with one verb: in "I live in Hull now, and
//! I've had a cold since May", the time is that of the cold.

use azera_types::Timestamp;

use super::{Calendar, find};
use crate::words::{spaced_words, tells_of_change};

/// Most words of a statement that is taken for one clause, without its time.
const MAX_WORDS: usize = 16;

/// Words for how often something happens in a stretch of time, and those that name the stretch: "twice a week" joins
/// nothing.
const TIMES: &str = "once twice times";
const EACH: &str = "a an per each every";

/// Present forms behind "I" that tell of what lasts. With "since" at the beginning, people say "since May I live in
/// Hull".
const LASTING: &str = "am live work play study drive own rent teach learn train run swim sing cycle commute use need \
    take drink eat sleep";

/// Forms of "to be" in the present.
const BEING: &str = "am m im is s are re";

/// Last place of the verb if a statement begins with an article, as "the spare key has"; else "I have".
const BEHIND_ARTICLE: usize = 3;
const BEHIND_SUBJECT: usize = 1;

/// The words by which one clause is told from two.
struct Language {
    /// The word that means nothing but since. "From" may mean another time, and "da" something else.
    since: &'static str,
    /// Words that join clauses, add a circumstance, or tell of one moment.
    joins: &'static str,
    /// Words at the beginning of a subject that has more than one.
    articles: &'static str,
    subjects: &'static str,
    /// Common forms of verbs of which a clause has one.
    verbs: &'static str,
    /// Forms of the tense that goes with since; empty if any does.
    tense: &'static str,
}

const LANGUAGES: [Language; 5] = [
    Language {
        since: "since",
        joins: "and but because while though although that which who whom whose where when if as so then than or nor \
            with without after before until till despite plus except too once twice times sold bought left lost got \
            gotten gone come seen met found",
        articles: "the a an my our your his her its their this that mr mrs ms miss dr prof",
        subjects: "i we you he she it they ive im",
        verbs: "am m is s are re was were have ve has do does did will ll would d can could should must haven hasn isn \
            aren wasn don doesn didn havent hasnt ive im",
        tense: "have ve has s haven hasn havent hasnt ive been",
    },
    Language {
        since: "seit",
        joins: "und aber weil wahrend obwohl dass welche welcher welches wo wenn als oder denn mit ohne nachdem bevor \
            bis trotz ausser sowie",
        articles: "der die das ein eine mein meine unser unsere dein deine sein seine ihr ihre herr frau dr prof",
        subjects: "ich du er sie wir ihr man",
        verbs: "bin bist ist sind seid war waren habe hab hast hat haben habt hatte wird werde werden kann will muss",
        tense: "",
    },
    Language {
        since: "depuis",
        joins: "et ou mais car parce que qu qui dont quand si comme avec sans apres avant pendant alors",
        articles: "le la l les un une mon ma mes notre nos ton ta son sa leur",
        subjects: "je j tu il elle on nous vous ils elles",
        verbs: "suis est sommes sont ai ont avons avez etais etait",
        tense: "",
    },
    Language {
        since: "desde",
        joins: "y e ou pero mas porque aunque embora mientras enquanto que quien quem donde onde cuando quando si se \
            como con com sin sem despues depois antes hasta ate",
        articles: "el la los las un una mi mis nuestro nuestra meu minha um uma o a os as su sus seu sua",
        subjects: "yo tu ella nosotros ellos ellas eu ele ela nos eles elas",
        verbs: "soy somos son estoy esta estan estamos he ha hemos han era estaba sou sao estou estao tengo tiene \
            tenho tem",
        tense: "",
    },
    Language {
        since: "sinds",
        joins: "en maar omdat want terwijl hoewel dat die wie waar wanneer als toen dus met zonder na tot",
        articles: "de het een mijn onze ons jouw zijn haar hun",
        subjects: "ik je jij hij ze zij we wij",
        verbs: "ben bent is was waren heb hebt heeft hebben had wordt word kan wil moet",
        tense: "",
    },
];

/// Returns since when a text says that it holds, read in `calendar`; `None` unless all of it is one clause.
pub(crate) fn holds_since(text: &str, calendar: &Calendar) -> Option<(Timestamp, Timestamp)> {
    let text = text.trim_matches(is_sign);
    // Behind "since", May is a month.
    let found = find(text, calendar, &|_| false)?;
    let since = found.span.since()?;
    let word = folded(text.get(found.range.clone())?).next()?;
    let language = LANGUAGES.iter().find(|language| language.since == word)?;
    let (before, behind) = (text.get(..found.range.start)?, text.get(found.range.end..)?);
    // A comma may part the time from the rest, but nothing may stand between two parts of a clause.
    let parts = match (before.trim_matches(is_sign), behind.trim_matches(is_sign)) {
        (before, "") => [before, ""],
        ("", behind) => ["", behind],
        _ => [before, behind],
    };
    let words: Vec<String> = parts.into_iter().flat_map(folded).collect();
    let is_whole = parts.into_iter().all(is_unbroken) && language.is_one_clause(&words, before.is_empty());
    // "Since May last year" may have been read as this May.
    let names_another = find(&parts.join(". "), calendar, &|_| false).is_some();
    (is_whole && !names_another).then_some(since)
}

impl Language {
    /// `is_first` is true if the time stands at the beginning.
    fn is_one_clause(&self, words: &[String], is_first: bool) -> bool {
        let Some(first) = words.first() else { return false };
        let last_place = if is_in(self.articles, first) { BEHIND_ARTICLE } else { BEHIND_SUBJECT };
        let count = |list: &str| words.iter().filter(|word| is_in(list, word)).count();
        // The verb of a second clause stands farther behind.
        let is_late = words.iter().position(|word| is_in(self.verbs, word)).is_some_and(|place| place > last_place);
        let is_rate =
            |place: usize, word: &str| is_in(TIMES, word) && words.get(place + 1).is_some_and(|next| is_in(EACH, next));
        // "I work as a nurse" joins nothing either.
        let is_role = |place: usize, word: &str| {
            word == "as" && words.get(place + 1).is_some_and(|next| matches!(next.as_str(), "a" | "an"))
        };
        let joins = |(place, word): (usize, &String)| {
            (is_in(self.joins, word) && !is_rate(place, word) && !is_role(place, word)) || tells_of_change(word)
        };
        let is_joined = words.iter().enumerate().any(joins);
        let is_single = !is_joined && !is_late && count(self.verbs) <= 1 && count(self.subjects) <= 1;
        is_single && words.len() <= MAX_WORDS && self.lasts(words, last_place, is_first)
    }

    /// Returns true if the verb has the tense of what still lasts. That is the present, too, behind a time.
    fn lasts(&self, words: &[String], last_place: usize, is_first: bool) -> bool {
        if self.tense.is_empty() {
            return true;
        }
        // "Since May is sick I work alone" says why, and May is somebody.
        let is_reason = |word: &String| is_in(self.verbs, word) && !is_in(self.subjects, word);
        if is_first && words.first().is_some_and(is_reason) {
            return false;
        }
        let has_any = |forms: &str| words.iter().take(last_place + 1).any(|word| is_in(forms, word));
        let lasts = matches!(words, [one, verb, ..] if matches!(one.as_str(), "i" | "we") && is_in(LASTING, verb));
        let is_present = is_first && (lasts || has_any(BEING));
        let has_tense = has_any(self.tense) || is_present;
        // "Feeling ill" may be a clause of its own, and "been to Hull" is over.
        let is_own = |before: &str| before == "been" || (is_present && is_in(BEING, before));
        // In "I have studied nursing", it is what the verb is about.
        let is_object = |place: usize| match words.get(place.saturating_sub(1)..=place) {
            Some([have, verb]) => matches!(have.as_str(), "have" | "ive" | "has") && verb.ends_with("ed"),
            _ => false,
        };
        let is_other = |(place, pair): (usize, &[String])| match pair {
            [before, word] if word.ends_with("ing") => !is_own(before) && !is_object(place),
            [before, word] => before == "been" && word == "to",
            _ => false,
        };
        has_tense && !words.windows(2).enumerate().any(is_other)
    }
}

fn folded(text: &str) -> impl Iterator<Item = String> {
    spaced_words(text).map(|(_, folded)| folded)
}

fn is_sign(c: char) -> bool {
    !c.is_alphanumeric()
}

/// Returns true if nothing but spaces stands between the words of a text.
fn is_unbroken(text: &str) -> bool {
    let is_word = |word: &str| {
        let has_sign = word.contains(|c: char| is_sign(c) && !matches!(c, '\'' | '’' | '-'));
        !has_sign && !word.starts_with('-') && !word.ends_with('-')
    };
    !text.contains('\n') && text.split_whitespace().all(is_word)
}

fn is_in(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

#[cfg(test)]
mod tests {
    use azera_types::TimeZone;

    use super::*;

    #[test]
    fn a_time_counts_if_it_is_that_of_the_whole_statement() {
        let calendar = Calendar::new("2026-08-03T10:00:00Z".parse().unwrap(), TimeZone::UTC);
        let since = |text: &str| holds_since(text, &calendar).map(|(from, _)| from.strftime("%F").to_string());
        for (text, want) in [
            ("I have lived in Hull since May", "2026-05-01"),
            ("I've lived in Hull, since May.", "2026-05-01"),
            ("Since May, I've lived in Hull", "2026-05-01"),
            ("Been in Hull since May", "2026-05-01"),
            ("I've been living in Hull since 2019!", "2019-01-01"),
            ("the spare key has been under the blue pot since 2019", "2019-01-01"),
            ("Ben's been in Hull since May", "2026-05-01"),
            ("Dr Weiss has been my dentist since May", "2026-05-01"),
            ("Since May I play badminton twice a week.", "2026-05-01"),
            ("I have worked as a librarian since May", "2026-05-01"),
            ("I've played badminton three times a week since May", "2026-05-01"),
            ("I have studied nursing since May", "2026-05-01"),
            ("Since May I'm working in Hull", "2026-05-01"),
            ("Since May my boss is Mrs Tan", "2026-05-01"),
            ("Ich wohne seit Mai in Hull", "2026-05-01"),
            ("Seit Mai bin ich krank", "2026-05-01"),
            ("J'habite à Hull depuis mai", "2026-05-01"),
            ("Vivo en Hull desde mayo", "2026-05-01"),
            ("Ik woon sinds mei in Hull", "2026-05-01"),
        ] {
            assert_eq!(since(text).as_deref(), Some(want), "{text}");
        }
        for text in [
            "I live in Hull now, and I've had a cold since May",
            "I live in Hull now though I've had a cold since May",
            "I live in Hull (had a cold since May)",
            "I live in Hull - ill since May",
            "I live in Hull with Ben who has been ill since May",
            "I live in Hull been ill since May",
            "I moved Ben's been ill since May",
            "I moved to Hull. Since May Ben has had a job",
            "I've lived in Hull. Since May no job",
            "I've moved to Hull since May",
            "I've been to Hull since May",
            "I've lived in Hull since May and Ben is ill",
            "I've been worried as Ben is ill since May",
            "I've lived here feeling ill since May",
            "I've been in Hull twice since May",
            "I play badminton since May",
            "Since May I went to Hull",
            "Since May I put money aside",
            "Since Monday is a holiday I work from home",
            "Since May is sick I work alone",
            "Since May's away I work alone",
            "Since May has a cold I work alone",
            "Since Sunday was my birthday I have a cake",
            "Since May works nights I live alone",
            "Since June can drive I am at home",
            "Since Friday is my day off I live for Fridays",
            "My car is a Golf from 2012",
            "From September I work at Lidl",
            "Vivo da maggio a Hull",
            "Ich wohne in Hull, bin seit Mai krank",
            "Ich wohne in Hull obwohl ich seit Mai krank bin",
            "New address since Monday: Graz.",
            "I live in Hull",
            "since May",
        ] {
            assert_eq!(since(text), None, "{text}");
        }
    }
}
