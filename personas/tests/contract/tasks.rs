use azera_personas::{built_in, parse};

use crate::files::file;

#[test]
fn messages_choose_the_task_they_ask_for() {
    let azera = built_in("azera").expect("built in");
    let check = |message: &str, task: Option<&str>| {
        assert_eq!(azera.task_behaviour_for(message).map(|found| found.task.as_str()), task, "{message:?}");
    };
    check("good morning!", None);
    check("", None);
    check("My sister Ines lands on Friday.", None);
    check("can you write a Python function that parses dates?", Some("coding"));
    check("what does this do?\n```\nlet x = 5;\n```", Some("coding"));
    check("what is `foo` for?", Some("coding"));
    check("the server crashed with a stack trace, it's not working", Some("troubleshooting"));
    check("My printer is broken and won't start", Some("troubleshooting"));
    check("Help me plan the move: deadline is May, I need a checklist", Some("planning"));
    check("tell me a story about a dragon", Some("storytelling"));
    check("I roll a d20 and i attack the goblin", Some("storytelling"));
    check("I feel lonely, it was a hard day", Some("comforting"));
    check("The story of history", Some("storytelling"));
    check("postscript and errorless", None);
    check(&"x ".repeat(100_000), None);
}

#[test]
fn a_tasks_own_cues_count() {
    let text =
        file("", "## Task Behaviours\n### If sailing\nCues: reef, jib*, 航海\nReef early.\n### If coding\nTest.\n");
    let persona = parse(&text).expect("valid");
    let check = |message: &str, task: Option<&str>| {
        assert_eq!(persona.task_behaviour_for(message).map(|found| found.task.as_str()), task, "{message:?}");
    };
    check("Shall we REEF now?", Some("sailing"));
    check("the jibsheet jams", Some("sailing"));
    check("明日は航海です", Some("sailing"));
    check("reef or code", Some("sailing"));
    check("python code for a reef", Some("coding"));
    check("a beefy freefall", None);
}
