//! What holds for every text.

use azera_voice_spoken::{CodeNote, DayOrder, Language, Options, Reader, Splitter, spoken};
use proptest::prelude::*;

fn splitter(is_eager: bool) -> Splitter {
    if is_eager { Splitter::new().eager() } else { Splitter::new() }
}

fn german(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut splitter = Splitter::of(Language::German);
    let mut sentences = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let piece: String = rest.drain(..(*cut).min(rest.len())).collect();
        sentences.extend(splitter.push(&piece));
    }
    sentences.extend(splitter.finish());
    sentences
}

fn sentences(text: &str, is_eager: bool) -> Vec<String> {
    let mut splitter = splitter(is_eager);
    let mut sentences = splitter.push(text);
    sentences.extend(splitter.finish());
    sentences
}

/// Pieces that rules look for.
const PIECES: &[&str] = &[
    " ",
    " ",
    " ",
    "\n",
    ".",
    "!",
    "?",
    "...",
    "…",
    ",",
    ":",
    "\"",
    "“",
    "”",
    "'",
    "(",
    ")",
    "*",
    "**",
    "_",
    "`",
    "```",
    "~~~",
    "||",
    "~~",
    "[",
    "](",
    "<",
    ">",
    "@",
    "#",
    "$",
    "€",
    "%",
    "°C",
    "km/h",
    "-",
    "–",
    "/",
    "+",
    "^",
    "²",
    "½",
    "٣",
    "Ⅷ",
    "①",
    "𝟙",
    "3",
    "14",
    "05",
    "2025",
    "1,234",
    "1e9",
    "0.5",
    "3pm",
    "1h20",
    "Dr",
    "am 3.",
    "und 2.",
    "Dann",
    "Mio.",
    "ich habe",
    "z.B.",
    "usw.",
    "St",
    "e.g",
    "U.S",
    "etc",
    "May",
    "Jan",
    "VIII",
    "NASA",
    "HTML",
    "smiles",
    "hello",
    "Hello",
    "I",
    "https://example.com/a?b=1",
    "a@b.example",
    "<@123>",
    "<t:1:R>",
    "😂",
    "👨‍👩‍👧",
    ":)",
    "<3",
    "sooo",
    "v1.2",
    "a.rs",
    "\\",
    "&amp;",
    "=",
    "x",
    "é",
    "ß",
    "中",
];

/// Texts of these pieces, so that they meet in every order.
fn chat() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(PIECES);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![3 => chat(), 1 => any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_same_text_gives_the_same_sentences_however_it_is_cut(
        text in texts(),
        cuts in prop::collection::vec(1_usize..9, 1..12),
        is_eager: bool,
    ) {
        let mut splitter = splitter(is_eager);
        let mut streamed = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        for cut in cuts.iter().cycle() {
            if at >= chars.len() {
                break;
            }
            let piece: String = chars.iter().skip(at).take(*cut).collect();
            streamed.extend(splitter.push(&piece));
            at += cut;
        }
        streamed.extend(splitter.finish());
        prop_assert_eq!(streamed, sentences(&text, is_eager));
    }

    #[test]
    fn german_sentences_are_the_same_however_they_are_cut(
        text in texts(),
        cuts in prop::collection::vec(1_usize..9, 1..12),
    ) {
        prop_assert_eq!(german(&text, &cuts), german(&text, &[text.len().max(1)]));
    }

    #[test]
    fn sentences_hold_everything_but_white_space(text in texts(), is_eager: bool) {
        let dense = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        prop_assert_eq!(dense(&sentences(&text, is_eager).concat()), dense(&text));
    }

    #[test]
    fn what_is_said_has_no_digit_and_no_markup(text in texts(), is_german: bool, day_first: bool) {
        let options = Options {
            language: if is_german { Language::German } else { Language::English },
            day_order: if day_first { DayOrder::DayFirst } else { DayOrder::MonthFirst },
            ..Options::default()
        };
        let said = spoken(&text, &options);
        let strange = regex::Regex::new(r"[^\p{Alphabetic}\p{M}\s'.,?!;:-]|\p{N}").unwrap();
        let stray = strange.find(&said).map(|found| found.as_str());
        prop_assert_eq!(stray, None, "{:?} in {:?}", stray, said);
    }
}

#[test]
fn long_text_without_an_end_is_handed_over_in_parts() {
    let text = "word ".repeat(400);
    let mut splitter = Splitter::new();
    let early = splitter.push(&text);
    assert!(early.len() >= 2 && early.iter().all(|part| part.chars().count() <= 700), "{}", early.len());
    let streamed: Vec<String> = text.chars().flat_map(|c| splitter.push(&c.to_string())).collect();
    assert!(!streamed.is_empty());
}

#[test]
fn sentences_come_as_soon_as_their_end_is_certain() {
    let mut splitter = Splitter::new();
    assert_eq!(splitter.push("Hello there. "), ["Hello there."]);
    assert_eq!(splitter.push("Really! "), ["Really!"]);
    assert!(splitter.push("I met Dr. ").is_empty());
    assert!(splitter.push("Lee at 3.").is_empty());
    assert_eq!(splitter.push("5 km. "), ["I met Dr. Lee at 3.5 km."]);
    assert_eq!(splitter.push("A line\nand"), ["A line"]);
    assert_eq!(splitter.finish(), ["and"]);
    assert!(splitter.finish().is_empty());
}

#[test]
fn sentences_are_whole() {
    let cases: &[(&str, &[&str])] = &[
        ("It costs 3.50. Cheap!", &["It costs 3.50.", "Cheap!"]),
        ("See https://a.example/b.html?c=1. Then rest.", &["See https://a.example/b.html?c=1.", "Then rest."]),
        ("J. R. R. Tolkien wrote it. I read it.", &["J. R. R. Tolkien wrote it.", "I read it."]),
        ("Wait... what? Yes.", &["Wait... what?", "Yes."]),
        ("Hmm... Fine.", &["Hmm...", "Fine."]),
        ("He said \"Stop. Now.\" and left. Good.", &["He said \"Stop. Now.\" and left.", "Good."]),
        ("She said \"Go.\" He went.", &["She said \"Go.\"", "He went."]),
        ("Meet at 7:30 a.m. on Monday. Bye.", &["Meet at 7:30 a.m. on Monday.", "Bye."]),
        ("I like fruit, e.g. Apples and pears. Yes.", &["I like fruit, e.g. Apples and pears.", "Yes."]),
        ("*She nods. Then she waves.* Hi.", &["*She nods. Then she waves.*", "Hi."]),
        ("I live on Elm St. It is quiet.", &["I live on Elm St.", "It is quiet."]),
        ("Ask St. John about it. Ok.", &["Ask St. John about it.", "Ok."]),
        (
            "Version 1.2.3 is out! (See p. 5. It helps.) Done.",
            &["Version 1.2.3 is out!", "(See p. 5. It helps.)", "Done."],
        ),
        ("Look:\n```rs\nlet a = 1.0; // b. C\n```\nDone.", &["Look:", "```rs\nlet a = 1.0; // b. C\n```", "Done."]),
        ("1. Open it.\n2. Close it.", &["1. Open it.", "2. Close it."]),
    ];
    for (text, expected) in cases {
        assert_eq!(sentences(text, false), *expected);
    }
}

#[test]
fn an_answer_mentions_its_code_once() {
    let mut reader = Reader::new(Options::default());
    let mut said = reader.push("Here:\n```\na = 1\n```\nAnd:\n```\nb = 2\n```\nThat is all.");
    said.extend(reader.finish());
    let said: Vec<&str> = said.iter().map(|sentence| sentence.spoken.as_str()).collect();
    assert_eq!(said, ["Here,", "I've put the code in the chat.", "And,", "", "That is all."]);
}

#[test]
fn a_listener_without_a_chat_is_not_sent_there() {
    let options = Options { code: CodeNote::NotRead, ..Options::default() };
    let said = spoken("Look:\n```\na = 1\n```\nAnd:\n```\nb = 2\n```", &options);
    assert_eq!(said, "Look: There is code here that I don't read aloud. And,");
}

#[test]
fn a_listener_who_gets_the_code_as_a_message_is_told_so() {
    let options = Options { code: CodeNote::InMessage, ..Options::default() };
    assert_eq!(spoken("Look:\n~~~\na = 1\n~~~", &options), "Look: I'm sending you the code as a direct message.");
}

#[test]
fn a_block_without_code_is_not_mentioned() {
    for text in ["Look.\n```\n```", "Look.\n~~~\n\n~~~", "Look.\n```"] {
        assert_eq!(spoken(text, &Options::default()), "Look.", "{text}");
    }
}

#[test]
fn a_day_without_its_year_follows_the_order_of_the_options() {
    let day_first = Options { day_order: DayOrder::DayFirst, ..Options::default() };
    assert_eq!(spoken("It is due 14/7.", &day_first), "It is due July fourteenth.");
    assert_eq!(spoken("On 3/4.", &day_first), "On April third.");
    assert_eq!(spoken("Take 3/4.", &day_first), "Take three quarters.");
}

#[test]
fn options_name_people_and_order_days() {
    let options = Options { names: [("123".to_owned(), "Maria".to_owned())].into(), ..Options::default() };
    assert_eq!(
        spoken("*smiles* Hi <@123>, see you on 3/4/2025.", &options.in_language("en-GB")),
        "Hi Maria, see you on April third, twenty twenty-five."
    );
}

#[test]
fn an_eager_splitter_hands_over_the_first_clause_alone() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(sentences(text, true), expected, "{text}");
    };
    check(
        "Well my friend, it rains, and it is cold. Stay, if you like, at home.",
        &["Well my friend,", "it rains, and it is cold.", "Stay, if you like, at home."],
    );
    // Too short, a date, a list of numbers, and words in marks.
    check("Well, it rains today.", &["Well, it rains today."]);
    check("It was on May 3, 2025 I think.", &["It was on May 3, 2025 I think."]);
    check("*looks up from her book, smiling* Hello there.", &["*looks up from her book, smiling* Hello there."]);
}
