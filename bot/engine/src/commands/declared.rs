use azera_adapter::{Access, Command, CommandOption, Form, MessageAction, OptionKind};

/// Returns a form that everybody may use.
const fn form(name: &'static str, word: &'static str, help: &'static str, options: &'static [CommandOption]) -> Form {
    Form { name, word, help, access: Access::Member, options }
}

/// Returns a form with options that only admins may use.
const fn of_admins(name: &'static str, help: &'static str, options: &'static [CommandOption]) -> Form {
    Form { name, word: name, help, access: Access::Admin, options }
}

/// Returns a form without options that only admins may use.
const fn for_admins(name: &'static str, word: &'static str, help: &'static str) -> Form {
    Form { name, word, help, access: Access::Admin, options: &[] }
}

/// Returns a form about a model that only the operator may use.
const fn of_model(name: &'static str, help: &'static str) -> Form {
    const NAME: &[CommandOption] = &[needed("name", "its name", OptionKind::Model)];
    Form { name, word: name, help, access: Access::Operator, options: NAME }
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

/// The form of a command without arguments.
const ALONE: &[Form] = &[form("", "", "", &[])];

const QUOTES: CommandOption = optional("quotes", "also forget the replies built on it", OptionKind::Flag);

const NAME: CommandOption = needed("name", "its name", OptionKind::Word);
const PERSONA: CommandOption = needed("name", "its name", OptionKind::Persona);
const MEMORY: CommandOption = needed("mnumber", "its id, as in m42", OptionKind::Memory);
const THEME: CommandOption = optional("theme", "how the picture looks: dark or light", OptionKind::Theme);
const TAG: CommandOption = needed("tag", "a word or a few", OptionKind::Text);

const SEARCH: Form =
    form("search", "search", "look for something", &[needed("words", "what to look for", OptionKind::Text)]);
const NUMBER: CommandOption = needed("number", "its number in the list", OptionKind::Count);
const IMPORT: Form = form(
    "import",
    "import",
    "bring some from elsewhere, as Markdown or JSON",
    &[optional("text", "what to bring", OptionKind::Text), optional("file", "a file of it", OptionKind::File)],
);
const EXPORT: Form = form("export", "export", "all of them, as JSON", &[]);

/// All commands.
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
            form("use", "use", "have another persona answer here", &[PERSONA]),
            of_admins("invite", "have another answer here, too, when it is called by name", &[PERSONA]),
            of_admins("dismiss", "have it answer here no more", &[PERSONA]),
            form("show", "show", "what a persona is like", &[PERSONA]),
            form("export", "export", "its file", &[PERSONA]),
            form("template", "template", "a file to begin a persona of your own with", &[]),
            of_admins(
                "upload",
                "bring a persona to this place",
                &[needed("file", "a persona's .md, or a card as .json or .png", OptionKind::File)],
            ),
            of_admins(
                "edit",
                "change a persona of this place; its versions before stay",
                &[PERSONA, optional("text", "its whole file", OptionKind::Page)],
            ),
            for_admins("confirm", "confirm", "take in what was uploaded"),
            for_admins("cancel", "cancel", "do not"),
            of_admins("rollback", "go back to the version before", &[PERSONA]),
            of_admins("remove", "remove a persona of this place", &[PERSONA]),
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
            form("switch", "switch", "go on along another", &[needed("name", "which", OptionKind::Branch)]),
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
            SEARCH,
            form("stats", "stats", "how much there is", &[THEME]),
            form("pin", "pin", "keep something you said for good", &[MEMORY]),
            form("export", "export", "everything about you, as a file", &[]),
        ],
    ),
    command(
        "forget",
        "forget for good, with a receipt; `quotes` takes along the replies built on it",
        Access::Member,
        &[
            form("last", "last", "the last thing you said here", &[QUOTES]),
            form("memory", "", "one memory", &[MEMORY, QUOTES]),
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
            form("show", "show", "one dream whole", &[NUMBER]),
            SEARCH,
            IMPORT,
            EXPORT,
        ],
    ),
    command(
        "journal",
        "my journal and diary",
        Access::Member,
        &[
            form("list", "list", "the newest entries", &[]),
            form("show", "show", "one entry whole", &[NUMBER]),
            SEARCH,
            form("trigger", "trigger", "have me write now", &[]),
            IMPORT,
            EXPORT,
            form("where", "channel", "where dreams and entries are posted", &[]),
            for_admins("here", "channel here", "post dreams and entries in this chat"),
            for_admins("off", "channel off", "post them nowhere"),
        ],
    ),
    command(
        "garden",
        "the little pieces I make up; the best are posted where the journal is",
        Access::Member,
        &[
            form("list", "list", "the newest pieces", &[]),
            form("show", "show", "one piece whole", &[NUMBER]),
            SEARCH,
            form("write", "write", "have me make something up now", &[]),
            form("publish", "publish", "post one where the journal is", &[NUMBER]),
            IMPORT,
            EXPORT,
        ],
    ),
    command(
        "checkin",
        "whether I ask how things are when you are silent for long; in direct messages",
        Access::Member,
        &[
            form("show", "", "whether I do", &[]),
            form("on", "on", "do so", &[optional("days", "after so many days of silence", OptionKind::Count)]),
            form("off", "off", "do not", &[]),
        ],
    ),
    command(
        "hearth",
        "whether what is said here changes, slowly and at rest, how I speak",
        Access::Member,
        &[
            form("status", "status", "whether I learn here, from you, and what serves", &[]),
            form("opt-in", "opt-in", "let me learn from what you say", &[]),
            form("opt-out", "opt-out", "do not, and take back what I learnt from you", &[]),
            form("history", "history", "what I learnt here, and what came of it", &[]),
            form(
                "rollback",
                "rollback",
                "take back what I learnt here last; in a place of many, the admins' to do",
                &[],
            ),
        ],
    ),
    command(
        "link",
        "link accounts of yours, here or elsewhere: told to one, known to the others; in direct messages",
        Access::Member,
        &[
            form("new", "", "show a code to say from your other account", &[]),
            form(
                "code",
                "",
                "say the code that your other account was shown",
                &[needed("code", "the code", OptionKind::Word)],
            ),
            form("confirm", "confirm", "link the account whose code you said", &[]),
            form("list", "list", "the accounts that are linked with this one", &[]),
            form(
                "remove",
                "remove",
                "take an account out, or this one",
                &[optional("name", "which; `all` parts them all", OptionKind::Text)],
            ),
        ],
    ),
    command("notes", "the working notes I keep of this chat, as far as they may be shown here", Access::Member, ALONE),
    command(
        "tag",
        "what this chat is about, in words to find it by; in a place of many, the admins' to give",
        Access::Member,
        &[
            form("list", "list", "the tags of this chat", &[]),
            form("find", "find", "chats that have a tag", &[TAG]),
            of_admins("add", "give this chat a tag", &[TAG]),
            of_admins("remove", "take a tag from this chat", &[TAG]),
        ],
    ),
    command(
        "group",
        "which chats belong together; in a place of many, the admins' to say",
        Access::Member,
        &[
            form("list", "list", "the groups and the chats in them", &[]),
            of_admins(
                "join",
                "put this chat into a group",
                &[needed("name", "what the group is called", OptionKind::Text)],
            ),
            of_admins("leave", "take this chat out of its group", &[]),
        ],
    ),
    command(
        "privacy",
        "what I keep of this place and of you, who may be shown it, and how to have it forgotten",
        Access::Member,
        &[
            form("show", "", "what I keep, and who may be shown it", &[]),
            form("addressed", "addressed", "keep of what you say only what you say to me", &[]),
            form("everything", "everything", "keep what I read of you, too", &[]),
        ],
    ),
    command(
        "settings",
        "how things are set in this chat",
        Access::Member,
        &[
            form("show", "", "how things are set, and by which command", &[]),
            form(
                "locale",
                "locale",
                "whose help lines I show to people in danger; in a place of many, the admins' to change",
                &[optional("locale", "such as en-GB, `none` for no country, or `default`", OptionKind::Word)],
            ),
        ],
    ),
    command(
        "status",
        "how I am here: mood, energy, focus, and what I feel towards you",
        Access::Member,
        &[form("", "", "", &[THEME])],
    ),
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
            form("remove", "remove", "take a rule out", &[NAME]),
            form("restore", "restore", "bring a built-in rule back", &[NAME]),
        ],
    ),
    command(
        "tune",
        "the numbers that my mind and what I write go by; in a place of many, the admins' to change",
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
            of_model("use", "have another answer"),
            of_model("pull", "fetch one"),
            of_model("remove", "remove the file of one"),
        ],
    ),
    in_terminal("quit", "leave the terminal", Access::Member, ALONE),
];

/// Actions on a message that somebody points at.
pub const MESSAGE_ACTIONS: &[MessageAction] = &[
    MessageAction { name: "Remember this", line: "/remember", asks: None },
    MessageAction { name: "Forget this", line: "/forget", asks: None },
    MessageAction {
        name: "Branch from here",
        line: "/branch",
        asks: Some(needed("name", "what the branch is called", OptionKind::Word)),
    },
    MessageAction { name: "Why?", line: "/why", asks: None },
];
