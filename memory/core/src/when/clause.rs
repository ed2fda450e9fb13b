//! Events that serve as dates, such as `before we moved`, and the words by which a question asks for now or for then.

use super::lexicon::Meaning;
use super::span::Relation;
use super::words::{Token, meanings_at, tokens};

/// Letters from which a word of an event carries meaning.
const MEANINGFUL_LETTERS: usize = 3;

/// An event in a question that stands for its date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventClause {
    /// The words of the event.
    pub text: String,
    /// On which side of the event the question asks.
    pub relation: Relation,
}

/// What a question asks for, among statements of which a later one replaces an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// What holds now.
    Now,
    /// What held before that.
    Then,
    /// What held first.
    First,
    /// Nothing is said.
    Open,
}

/// Returns the event that a question names in place of a date, and the question without it.
pub(crate) fn event_clause(text: &str) -> Option<(EventClause, String)> {
    let tokens = tokens(text);
    (0..tokens.len()).find_map(|at| clause_at(text, &tokens, at))
}

fn clause_at(text: &str, tokens: &[Token], at: usize) -> Option<(EventClause, String)> {
    let (relation, words) = meanings_at(tokens, at).find_map(|(meaning, words)| match meaning {
        Meaning::Clause(relation) => Some((relation, words)),
        _ => None,
    })?;
    let start = at + words;
    let has = |at: usize, wanted: Meaning| meanings_at(tokens, at).any(|(meaning, _)| meaning == wanted);
    let follows_verb =
        at.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|token| is_phrasal(&token.folded));
    // `When` at the beginning asks for a time, unless a clause with a comma follows.
    if tokens.get(start).is_none_or(|token| token.begins) || has(start, Meaning::NoClause) || follows_verb {
        return None;
    }
    let length = tokens.iter().skip(start + 1).take_while(|token| !token.begins).count() + 1;
    let within = tokens.get(start..start + length)?;
    let asks = within.iter().position(|token| is_question_word(&token.folded));
    let length = match asks.filter(|_| at == 0) {
        Some(before) => before,
        None => length,
    };
    let event = tokens.get(start..start + length)?;
    let is_telling = |token: &Token| {
        token.folded.chars().count() >= MEANINGFUL_LETTERS
            && !matches!(token.folded.as_str(), "the" | "she" | "they" | "you")
    };
    if !event.iter().any(is_telling) {
        return None;
    }
    let (first, last) = (event.first()?, event.last()?);
    let whole = tokens.get(at)?.range.start..last.range.end;
    let rest = format!("{}{}", text.get(..whole.start)?, text.get(whole.end..)?);
    let rest = rest.trim_matches(|c: char| c.is_whitespace() || c == ',').to_owned();
    if !rest.chars().any(char::is_alphanumeric) {
        return None;
    }
    let text = text.get(first.range.start..last.range.end)?.to_owned();
    Some((EventClause { text, relation }, rest))
}

/// Returns true for verbs with which `after` is no time.
fn is_phrasal(word: &str) -> bool {
    matches!(
        word,
        "look" | "looks" | "looked" | "looking" | "named" | "ask" | "asked" | "asks" | "asking" | "one" | "day"
    )
}

fn is_question_word(word: &str) -> bool {
    matches!(
        word,
        "what" | "where" | "who" | "which" | "how" | "did" | "whom" | "whose" | "what's" | "who's" | "where's"
    )
}

/// Returns what a question asks for.
pub(crate) fn era(text: &str) -> Era {
    let tokens = tokens(text);
    let (mut at, mut found) = (0, Era::Open);
    while at < tokens.len() {
        let meanings: Vec<(Meaning, usize)> = meanings_at(&tokens, at).collect();
        if let Some((_, words)) = meanings.iter().find(|(meaning, _)| *meaning == Meaning::NoEra) {
            at += words;
            continue;
        }
        let era = meanings.iter().find_map(|(meaning, _)| match meaning {
            Meaning::Era(era) => Some(*era),
            _ => None,
        });
        // `Where did I live before?`
        let is_last = tokens.get(at + 1).is_none_or(|token| token.begins);
        let is_before = is_last && tokens.get(at).is_some_and(|token| token.folded == "before");
        // `before that` and `before now` ask for the time before.
        let refers = tokens.get(at).is_some_and(|token| token.folded == "before")
            && tokens
                .get(at + 1)
                .is_some_and(|token| matches!(token.folded.as_str(), "that" | "this" | "now" | "then"));
        match era {
            _ if is_before || refers => return Era::Then,
            Some(Era::First | Era::Then) => return era.unwrap_or(Era::Open),
            Some(era) => found = era,
            None => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_and_removed() {
        #[track_caller]
        fn check(text: &str, want: Option<(&str, Relation, &str)>) {
            let found = event_clause(text);
            let found = found.as_ref().map(|(event, rest)| (event.text.as_str(), event.relation, rest.as_str()));
            assert_eq!(found, want, "{text}");
        }
        check("Where did I park before we moved?", Some(("we moved", Relation::Before, "Where did I park ?")));
        check("Before the move, where did I park?", Some(("the move", Relation::Before, "where did I park?")));
        check("Since the accident what have I read?", Some(("the accident", Relation::Since, "what have I read?")));
        check(
            "What did we eat while we were in Rome?",
            Some(("we were in Rome", Relation::Within, "What did we eat ?")),
        );
        check("Who helped until I got the job?", Some(("I got the job", Relation::Until, "Who helped ?")));
        check("Wo wohnte ich, bevor wir umzogen?", Some(("wir umzogen", Relation::Before, "Wo wohnte ich, ?")));
        check("When did we move?", None);
        check("Where did I live before?", None);
        check("Who looks after the cat?", None);
        check("What came before that?", None);
    }

    #[test]
    fn the_era_of_a_question_is_read() {
        #[track_caller]
        fn check(text: &str, want: Era) {
            assert_eq!(era(text), want, "{text}");
        }
        check("Where do I live now?", Era::Now);
        check("Where did I live before?", Era::Then);
        check("What was my old job?", Era::Then);
        check("How old is my cat?", Era::Open);
        check("Where did Ann originally live?", Era::First);
        check("What is my first name?", Era::Open);
        check("What did I do first?", Era::Open);
        check("Where did I live before that?", Era::Then);
        check("What is my phone number?", Era::Open);
        check("Wo habe ich früher gewohnt?", Era::Then);
    }
}
