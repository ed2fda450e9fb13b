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
fn german_sentences_end_by_the_next_word() {
    for (text, expected) in [
        ("Das ist mein 30. Geburtstag. Gut.", 2),
        ("Es ist Freitag, 3. Mai. Gut.", 2),
        ("Wir wohnen im 1. und 2. Stock. Gut.", 2),
        ("Wir bleiben bis 10. Dann gehen wir.", 2),
        ("Das kostet 3 Mio. Dann kam er.", 2),
        ("Dort leben 3 Mio. Menschen. Gut.", 2),
        ("Es gibt Tee o.Ä. Dann gehen wir.", 2),
        ("Es war im 19. Jh. Dann kam er.", 2),
        ("Z.B. Anna kommt. Ca. 20 Leute sind da.", 2),
    ] {
        let said = sentences(text, in_language("de"));
        assert_eq!(said.len(), expected, "{said:?}");
        let mut reader = Reader::new(in_language("de"));
        let mut by_letters: Vec<_> = text.chars().flat_map(|c| reader.push(c.encode_utf8(&mut [0; 4]))).collect();
        by_letters.extend(reader.finish());
        let by_letters: Vec<String> = by_letters.into_iter().map(|sentence| sentence.spoken).collect();
        assert_eq!(by_letters, said);
    }
}

#[test]
fn a_german_text_is_split_by_german_rules_whatever_the_voice() {
    let said = sentences("Ich habe am 3. Mai Geburtstag. Gut.", in_language("en"));
    assert_eq!(said, ["Ich habe am dritten Mai Geburtstag.", "Gut."]);
    let said = sentences("I have it for you. The meeting is at 3. Dr. Lee comes.", in_language("de"));
    assert_eq!(said.len(), 3, "{said:?}");
}

#[test]
fn actions_of_the_other_language_are_left_out() {
    assert_eq!(spoken("*lächelt sanft* Hallo!", &in_language("en")), "Hallo!");
    assert_eq!(spoken("*smiles* Hallo du!", &in_language("de")), "Hallo du!");
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
    let options = Options { code: CodeNote::InMessage, ..in_language("de") };
    assert_eq!(spoken("```\na\n```", &options), "Den Code schicke ich dir als Direktnachricht.");
}
