//! German texts, and texts in languages without rules.

use azera_voice_spoken::{CodeNote, Language, Options, Reader, spoken};

fn in_language(tag: &str) -> Options {
    Options::default().in_language(tag)
}

/// The words alone, since a voice says no capitals and marks.
fn words(text: &str) -> String {
    let letters = text.to_lowercase().replace(|c: char| !c.is_alphabetic() && c != '\'', " ");
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sentences(text: &str, options: Options) -> Vec<String> {
    let mut reader = Reader::new(options);
    let mut said = reader.push(text);
    said.extend(reader.finish());
    said.into_iter().map(|sentence| sentence.spoken).collect()
}

#[test]
fn german_forms_are_said_in_german() {
    let mut wrong = Vec::new();
    for (written, expected) in include_str!("data/german.tsv").lines().skip(2).filter_map(|line| line.split_once('\t'))
    {
        let said = spoken(written, &in_language("de-DE"));
        if words(&said) != words(expected) {
            wrong.push(format!("{written}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_language_of_the_sentence_counts_before_that_of_the_voice() {
    let text = "Ich habe das für dich. Um 14:05.";
    assert_eq!(sentences(text, in_language("en")), ["Ich habe das für dich.", "Um vierzehn Uhr fünf."]);
    assert_eq!(sentences("This is the 3rd of them. At 14:05.", in_language("de"))[1], "At fourteen oh five.");
    // One word tells nothing, so the voice decides.
    assert_eq!(spoken("14:05!", &in_language("de")), "vierzehn Uhr fünf!");
    assert_eq!(spoken("14:05!", &in_language("en-US")), "fourteen oh five!");
}

#[test]
fn other_languages_keep_their_numbers() {
    let french = in_language("fr");
    assert_eq!(
        spoken("*Attends*, à 14:05 ça coûte **3 €** 😂, voir https://www.example.fr/a?b=1.", &french),
        "Attends, à 14:05 ça coûte 3 €, voir example.fr."
    );
    assert_eq!(spoken("<@1> dit : <t:0:t>", &french), "dit : 00:00");
    assert_eq!(spoken("```\na = 1\n```", &french), "");
    assert_eq!(Language::of("pt-BR"), Language::Other);
}

#[test]
fn german_sentences_end_where_they_end() {
    let said = sentences("Am 3. Mai kommt z.B. Dr. Lee. Sie bringt usw. mit. Gut.", in_language("de"));
    assert_eq!(said, ["Am dritten Mai kommt zum Beispiel Doktor Lee.", "Sie bringt und so weiter mit.", "Gut."]);
}

#[test]
fn what_is_not_read_is_said_in_german() {
    let said = sentences("Hier:\n```\na = 1\n```\nFrag <@7> am <t:0:d>.", in_language("de"));
    assert_eq!(
        said,
        ["Hier,", "Den Code habe ich in den Chat geschrieben.", "Frag jemand am ersten Januar neunzehnhundertsiebzig."]
    );
    let options = Options { code: CodeNote::NotRead, ..in_language("de") };
    assert_eq!(spoken("```\na\n```", &options), "Hier steht Code, den ich nicht vorlese.");
}
