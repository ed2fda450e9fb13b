//! Converts text between perspectives: a statement to somebody about themselves, or a question of theirs, becomes one
//! about them.

/// Verbs with an irregular third person, in the present.
const IRREGULAR: [(&str, &str); 6] =
    [("are", "is"), ("have", "has"), ("do", "does"), ("don't", "doesn't"), ("go", "goes"), ("were", "was")];

/// Verbs whose third person ends in *s*.
const REGULAR: [&str; 26] = [
    "take", "need", "want", "like", "get", "work", "swim", "support", "play", "pay", "owe", "meet", "live", "listen",
    "dislike", "come", "boil", "sit", "react", "love", "leave", "eat", "call", "bake", "prefer", "keep",
];

/// Verbs that do not change: past forms, and those before another verb.
const UNCHANGED: [&str; 29] = [
    "promised", "wished", "waited", "took", "studied", "stopped", "planted", "paid", "lost", "found", "finished",
    "dreamed", "decided", "chose", "bought", "won't", "won", "went", "wanted", "saw", "said", "ran", "left", "gave",
    "danced", "can't", "will", "did", "grew",
];

/// Verbs before `I` in a question, with their third person.
const ASKING: [(&str, &str); 9] = [
    ("do", "does"),
    ("don't", "doesn't"),
    ("did", "did"),
    ("am", "is"),
    ("have", "has"),
    ("was", "was"),
    ("should", "should"),
    ("can", "can"),
    ("can't", "can't"),
];

fn third_person(verb: &str) -> Option<String> {
    let irregular = IRREGULAR.iter().find(|(own, _)| *own == verb).map(|(_, other)| (*other).to_owned());
    let regular = || REGULAR.contains(&verb).then(|| format!("{verb}s"));
    irregular.or_else(regular).or_else(|| UNCHANGED.contains(&verb).then(|| verb.to_owned()))
}

/// Converts `your boat` to `Mara's boat`, and `you take them` to `Mara takes them`. `None` if more would have to
/// change.
pub(crate) fn about(text: &str, who: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    let mut named = false;
    let mut all = text.split(' ');
    while let Some(word) = all.next() {
        match word {
            "you" if named => words.push("they".to_owned()),
            "you" => {
                words.push(who.to_owned());
                words.push(third_person(all.next()?)?);
                named = true;
            }
            "your" => {
                words.push(if named { "their".to_owned() } else { format!("{who}'s") });
                named = true;
            }
            "me" | "I" | "yourself" | "yours" | "our" | "we" => return None,
            _ => words.push(word.to_owned()),
        }
    }
    Some(words.join(" "))
}

/// Converts `what's my fern called?` to `what's Mara's fern called?`, and `which bus do I take?` to
/// `which bus does Mara take?`. `None` if more would have to change, or if the question is about nobody.
pub(crate) fn question_about(question: &str, who: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    let mut named = false;
    for word in question.split(' ') {
        match word {
            "I" => {
                let asking = words.pop()?;
                let (_, other) = ASKING.iter().find(|(own, _)| *own == asking)?;
                words.push((*other).to_owned());
                words.push(if named { "they".to_owned() } else { who.to_owned() });
                named = true;
            }
            "my" => {
                words.push(if named { "their".to_owned() } else { format!("{who}'s") });
                named = true;
            }
            "me" | "mine" | "our" | "we" | "us" | "I'm" | "I've" | "you" => return None,
            _ => words.push(word.to_owned()),
        }
    }
    named.then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_to_a_person_become_statements_about_them() {
        let about = |text| about(text, "Mara");
        assert_eq!(about("your boat is called Petrel").unwrap(), "Mara's boat is called Petrel");
        assert_eq!(about("you take your drops at noon").unwrap(), "Mara takes their drops at noon");
        assert_eq!(about("what you are scared of").unwrap(), "what Mara is scared of");
        assert_eq!(about("the tent is in the shed").unwrap(), "the tent is in the shed");
        assert_eq!(about("you frobnicate it"), None, "a verb it does not know");
        assert_eq!(about("what Jo said to me"), None);
    }

    #[test]
    fn questions_of_a_person_become_questions_about_them() {
        let questions = |text| question_about(text, "Mara");
        assert_eq!(questions("what's my fern called?").unwrap(), "what's Mara's fern called?");
        assert_eq!(
            questions("which bus do I take to my office?").unwrap(),
            "which bus does Mara take to their office?"
        );
        assert_eq!(questions("where am I going?").unwrap(), "where is Mara going?");
        assert_eq!(questions("which platform was it?"), None, "it is about nobody");
        assert_eq!(questions("who taught me how to drive?"), None);
        assert_eq!(questions("I'm at the shop, which size do I need?"), None);
    }
}
