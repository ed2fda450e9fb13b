use azera_adapter::{Access, Command, CommandOption, Form, OptionKind};

/// A form that everybody may use.
const fn form(name: &'static str, word: &'static str, help: &'static str, options: &'static [CommandOption]) -> Form {
    Form { name, word, help, access: Access::Member, options }
}

/// The same for admins.
const fn for_admins(name: &'static str, word: &'static str, help: &'static str) -> Form {
    Form { name, word, help, access: Access::Admin, options: &[] }
}

const fn needed(name: &'static str, help: &'static str, kind: OptionKind) -> CommandOption {
    CommandOption { name, help, kind, required: true }
}

const fn optional(name: &'static str, help: &'static str, kind: OptionKind) -> CommandOption {
    CommandOption { name, help, kind, required: false }
}

const fn command(name: &'static str, help: &'static str, access: Access, forms: &'static [Form]) -> Command {
    Command { name, help, access, terminal: false, forms }
}

const fn in_terminal(name: &'static str, help: &'static str, access: Access, forms: &'static [Form]) -> Command {
    Command { name, help, access, terminal: true, forms }
}

/// The command alone.
const ALONE: &[Form] = &[form("", "", "", &[])];

const QUOTES: CommandOption = optional("quotes", "also forget the replies built on it", OptionKind::Flag);

/// Every command there is.
pub const COMMANDS: &[Command] = &[
    command("help", "what there is to say to me", Access::Member, ALONE),
    in_terminal("new", "begin another chat; what was said stays remembered", Access::Member, ALONE),
    in_terminal(
        "chats",
        "list your chats, or go to one",
        Access::Member,
        &[form("", "", "", &[optional("number", "the chat to go to", OptionKind::Count)])],
    ),
    command(
        "persona",
        "who answers in this chat",
        Access::Member,
        &[
            form("list", "list", "who there is to answer", &[]),
            form("use", "use", "have another persona answer here", &[needed("name", "its name", OptionKind::Word)]),
            form("show", "show", "what a persona is like", &[needed("name", "its name", OptionKind::Word)]),
        ],
    ),
    in_terminal(
        "as",
        "speak as somebody else (in the terminal)",
        Access::Operator,
        &[form("", "", "", &[needed("name", "who speaks", OptionKind::Text)])],
    ),
    command("why", "what stood behind the last reply", Access::Member, ALONE),
    command(
        "branch",
        "try another way on from here; the old one stays",
        Access::Member,
        &[
            form(
                "new",
                "",
                "begin a branch",
                &[
                    needed("name", "what it is called", OptionKind::Word),
                    optional("back", "so many messages back", OptionKind::Count),
                ],
            ),
            form("list", "list", "the branches of this chat", &[]),
            form("switch", "switch", "go on along another", &[needed("name", "which", OptionKind::Word)]),
        ],
    ),
    command("regenerate", "answer the last message again", Access::Member, ALONE),
    command(
        "swipe",
        "choose among the answers made",
        Access::Member,
        &[form("next", "next", "the next answer", &[]), form("previous", "previous", "the one before", &[])],
    ),
    command(
        "remember",
        "keep something for good",
        Access::Member,
        &[form("", "", "", &[needed("text", "what to keep", OptionKind::Text)])],
    ),
    command("me", "what I keep in mind about you, as far as it may be shown here", Access::Member, ALONE),
    command(
        "memory",
        "what I remember that may be shown here",
        Access::Member,
        &[
            form("search", "search", "look for something", &[needed("words", "what to look for", OptionKind::Text)]),
            form("stats", "stats", "how much there is", &[]),
            form("export", "export", "everything about you, as a file", &[]),
        ],
    ),
    command(
        "forget",
        "forget for good, with a receipt; `quotes` takes along the replies built on it",
        Access::Member,
        &[
            form("last", "last", "the last thing you said here", &[QUOTES]),
            form("memory", "", "one memory", &[needed("mnumber", "its id, as in m42", OptionKind::Word), QUOTES]),
            form("me", "me", "everything you ever said to me", &[QUOTES]),
            form("chat", "chat", "everything in this chat", &[QUOTES]),
        ],
    ),
    command(
        "dream",
        "what I dreamt that may be told here",
        Access::Member,
        &[
            form("list", "list", "the newest dreams", &[]),
            form("show", "show", "one dream whole", &[needed("number", "its number in the list", OptionKind::Count)]),
            form("search", "search", "look for something", &[needed("words", "what to look for", OptionKind::Text)]),
            form(
                "import",
                "import",
                "bring dreams from elsewhere",
                &[needed("text", "Markdown or JSON", OptionKind::Text)],
            ),
            form("export", "export", "all of them, as JSON", &[]),
        ],
    ),
    command(
        "journal",
        "my journal and diary",
        Access::Member,
        &[
            form("list", "list", "the newest entries", &[]),
            form("show", "show", "one entry whole", &[needed("number", "its number in the list", OptionKind::Count)]),
            form("search", "search", "look for something", &[needed("words", "what to look for", OptionKind::Text)]),
            form("trigger", "trigger", "have me write now", &[]),
            form(
                "import",
                "import",
                "bring entries from elsewhere",
                &[needed("text", "Markdown or JSON", OptionKind::Text)],
            ),
            form("export", "export", "all of them, as JSON", &[]),
            form("where", "channel", "where dreams and entries are posted", &[]),
            for_admins("here", "channel here", "post dreams and entries in this chat"),
            for_admins("off", "channel off", "post them nowhere"),
        ],
    ),
    command("status", "how I am here: mood, energy, focus, and what I feel towards you", Access::Member, ALONE),
    command(
        "rules",
        "what certain messages call for; in a place of many, the admins' to change",
        Access::Member,
        &[
            form("list", "list", "the rules in force here", &[]),
            form(
                "add",
                "add",
                "add a rule: a name, tags with commas, feelings as warmth=0.1, a text for the prompt",
                &[needed("rule", "as in `jokes joke,good_news playfulness=0.1 Laugh along.`", OptionKind::Text)],
            ),
            form("test", "test", "what a message would call for", &[needed("text", "the message", OptionKind::Text)]),
            form("remove", "remove", "take a rule out", &[needed("name", "its name", OptionKind::Word)]),
            form("restore", "restore", "bring a built-in rule back", &[needed("name", "its name", OptionKind::Word)]),
        ],
    ),
    command(
        "tune",
        "the numbers that my mind goes by; in a place of many, the admins' to change",
        Access::Member,
        &[form(
            "",
            "",
            "",
            &[
                optional("name", "which number", OptionKind::Word),
                optional("value", "what it is to be, or `default`", OptionKind::Word),
            ],
        )],
    ),
    command(
        "answer",
        "when I answer in this chat",
        Access::Admin,
        &[
            for_admins("show", "", "when I answer now"),
            for_admins("addressed", "addressed", "when I am mentioned, replied to or called"),
            for_admins("always", "always", "everything that is not meant for somebody else"),
            for_admins("never", "never", "nothing"),
        ],
    ),
    command(
        "model",
        "the model that answers",
        Access::Member,
        &[
            form("show", "", "which it is", &[]),
            form("list", "list", "which there are", &[]),
            Form {
                name: "use",
                word: "use",
                help: "have another answer",
                access: Access::Operator,
                options: &[needed("name", "its name", OptionKind::Word)],
            },
        ],
    ),
    in_terminal("quit", "leave the terminal", Access::Member, ALONE),
];
