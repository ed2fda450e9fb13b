//! What a text is about, by the words that tell it: without grammar, times and small words, and without endings, so that
//! "painted" is "paint".

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use crate::recall::is_filler;
use crate::words::{carries_meaning, document_words, is_function_word};

/// Shortest word that tells something, in characters. Scripts without spaces have shorter ones.
const TELLING_CHARS: usize = 3;

/// Letters that a word keeps when an ending is cut.
const STEM_CHARS: usize = 3;

/// Words that tell nothing about a plan, a problem or a question.
const COMMON: &str = "about actually after again all alright already always another anyone anybody anything around away \
    back because before best better bit bye came cannot come coming course day days different done dont earlier else \
    even ever every everything exactly fine first forget found gave get gets getting give glad gonna good got great \
    guess guys hand happen happened hard hello help here hey hope hour hours idea into just kind know last late later \
    least left let lets like little long look looking lot love made make many maybe mean minute moment month more most \
    much name need needs never new news nice nobody none nothing now off okay old once one only other over own part past \
    people place plan plans please pretty probably put ready really right said same say see seem seems should since some \
    somebody someone something soon sorry still stuff such sure take taken talk tell than thank thanks that then there \
    these they thing things think this those thought time times today together tomorrow tonight too took tried try \
    trying two until use used very via wait want wanted wants was way week weekend weeks well went while will with \
    without won wont work worked working works would year years yes yesterday yet \
    aber alle also auch auf bald beim bin bitte danke dann das dass den der die doch dort durch eigentlich ein eine einen \
    einfach erst etwas fur ganz geht gerade gern gestern gut habe haben hallo hast hat heute hier ich immer ist jetzt \
    kann kein keine klar leider mal man mehr mein meine meinen mich mir mit morgen muss nach nicht noch nur oder okay \
    schon sehr sein sich sie sind uns und unser unsere vielleicht vom von war was weil wenn werde werden wieder will wir \
    woche wollen wurde zum zur uber";

static COMMON_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| COMMON.split_whitespace().collect());

/// Past forms that no rule makes, with their stems.
const IRREGULAR: &[(&str, &str)] = &[
    ("ate", "eat"),
    ("bought", "buy"),
    ("brought", "bring"),
    ("built", "build"),
    ("caught", "catch"),
    ("chose", "choos"),
    ("drew", "draw"),
    ("drove", "driv"),
    ("fed", "feed"),
    ("flew", "fly"),
    ("gave", "giv"),
    ("grew", "grow"),
    ("held", "hold"),
    ("knit", "knit"),
    ("met", "meet"),
    ("ran", "run"),
    ("rode", "rid"),
    ("sang", "sing"),
    ("sent", "send"),
    ("sewed", "sew"),
    ("sold", "sell"),
    ("spoke", "speak"),
    ("swam", "swim"),
    ("taught", "teach"),
    ("threw", "throw"),
    ("tore", "tear"),
    ("wore", "wear"),
    ("woke", "wak"),
    ("wrote", "writ"),
];

/// Telling words as sorted hashes, without repetition.
pub(super) type Topic = Vec<u64>;

/// Returns the telling words of a text.
pub(super) fn topic(text: &str) -> Topic {
    let telling = document_words(text).into_iter().filter(|word| tells(word));
    let mut words: Topic = telling.map(|word| hash(&stem(&word))).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns how many words both have.
pub(super) fn shared(one: &Topic, other: &Topic) -> usize {
    one.iter().filter(|word| other.binary_search(word).is_ok()).count()
}

/// Returns true if a text with these words speaks of the topic: it has two of its words, or half of them.
pub(super) fn speaks_of(words: &Topic, topic: &Topic) -> bool {
    let both = shared(words, topic);
    both >= 2 || both > 0 && 2 * both >= topic.len()
}

fn tells(word: &str) -> bool {
    if carries_meaning(word) {
        return true;
    }
    word.chars().count() >= TELLING_CHARS
        && !COMMON_WORDS.contains(word)
        && !is_filler(word)
        && !is_function_word(word)
        && !word.chars().all(|c| c.is_ascii_digit())
}

/// Cuts the endings of a word.
fn stem(word: &str) -> String {
    if let Some((_, stem)) = IRREGULAR.iter().find(|(past, _)| *past == word) {
        return (*stem).to_owned();
    }
    let keeps = |stem: &&str| stem.chars().count() >= STEM_CHARS;
    let cut = ["ing", "ed", "es", "s"].iter().find_map(|ending| word.strip_suffix(ending).filter(keeps));
    let bare = cut.unwrap_or(word);
    let bare = bare.strip_suffix('e').filter(keeps).unwrap_or(bare);
    let bare = match bare.strip_suffix('i') {
        // "carried" and "carries" belong to "carry".
        Some(start) if cut.is_some() && start.chars().count() >= STEM_CHARS - 1 => return format!("{start}y"),
        _ => bare,
    };
    // "planned" belongs to "plan".
    let mut letters = bare.chars().rev();
    let is_doubled = cut.is_some() && letters.next() == letters.next() && bare.chars().count() > STEM_CHARS;
    let doubled = bare.char_indices().next_back().filter(|_| is_doubled).map(|(at, _)| at);
    doubled.and_then(|at| bare.get(..at)).unwrap_or(bare).to_owned()
}

fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_speaks_of_a_topic_whatever_the_endings() {
        #[track_caller]
        fn check(one: &str, other: &str, want: bool) {
            assert_eq!(speaks_of(&topic(one), &topic(other)), want, "{one} / {other}");
        }
        check("I painted the fence", "I'm going to paint the fence on Saturday", true);
        check("the fences are painted", "paint the fence", true);
        check("we planned it, and carried the boxes", "plan to carry boxes", true);
        check("I bought a kettle", "I'll buy a kettle tomorrow", true);
        check("The exam went well", "I have an exam on Friday", true);
        check("It went well", "I have an exam on Friday", false);
        check("The cat sleeps", "I'm going to paint the fence", false);
        check("犬を散歩した", "犬の散歩に行く", true);
    }
}
