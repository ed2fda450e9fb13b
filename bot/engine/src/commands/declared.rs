use azera_adapter::{Access, Command, CommandOption, Form, MessageAction, OptionKind};

use super::declared_pictures::{GALLERY, IMAGINE, PICTURE, REMIX_PROMPT};
use super::declared_voice::VOICE;

/// Returns a form that everybody may use.
pub(super) const fn form(
    name: &'static str,
    word: &'static str,
    help: &'static str,
    options: &'static [CommandOption],
) -> Form {
    Form { name, word, help, access: Access::Member, options }
}

/// Returns a form with options that only admins may use.
pub(super) const fn of_admins(name: &'static str, help: &'static str, options: &'static [CommandOption]) -> Form {
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

pub(super) const fn needed(name: &'static str, help: &'static str, kind: OptionKind) -> CommandOption {
    CommandOption { name, help, kind, required: true }
}

pub(super) const fn optional(name: &'static str, help: &'static str, kind: OptionKind) -> CommandOption {
    CommandOption { name, help, kind, required: false }
}

pub(super) const fn command(name: &'static str, help: &'static str, access: Access, forms: &'static [Form]) -> Command {
    Command { name, help, access, terminal: false, forms }
}

const fn in_terminal(name: &'static str, help: &'static str, access: Access, forms: &'static [Form]) -> Command {
    Command { name, help, access, terminal: true, forms }
}

/// The form of a command without arguments.
const ALONE: &[Form] = &[form("", "", "", &[])];

const QUOTES: CommandOption = optional("quotes", "also forget the replies that rest on it", OptionKind::Flag);

const NAME: CommandOption = needed("name", "its name", OptionKind::Word);
const PERSONA: CommandOption = needed("name", "its name", OptionKind::Persona);
const MEMORY: CommandOption = needed("id", "its id, such as m42", OptionKind::Memory);
const WHY: &[Form] = &[form("", "", "", &[optional("id", "a memory to show whole, such as m42", OptionKind::Memory)])];
const NEWER: CommandOption = needed("newer", "the id of the newer one", OptionKind::Memory);
const NEW_TEXT: CommandOption = needed("text", "what holds now", OptionKind::Text);
const RATING: CommandOption = needed("rating", "helpful, unhelpful, or none to take it back", OptionKind::Word);
const COUNTS: CommandOption = needed("counts", "off or on", OptionKind::Word);
const THEME: CommandOption = optional("theme", "the colours of the picture: dark or light", OptionKind::Theme);
const TWO_NAMES: CommandOption = needed("names", "both names, such as `Ann = Annie`", OptionKind::Text);
const FILES: CommandOption = needed("which", "`files`, or `files 2` for the second part", OptionKind::Text);
const PAGE: CommandOption = optional("page", "the page to show; without it, the first one", OptionKind::Count);
const EPISODES: &[CommandOption] = &[optional("words", "words or names that must be in it", OptionKind::Text), PAGE];
const TAG: CommandOption = needed("tag", "one word or a few", OptionKind::Text);

pub(super) const SEARCH: Form =
    form("search", "search", "search", &[needed("words", "the words to find", OptionKind::Text)]);
const NUMBER: CommandOption = needed("number", "its number in the list", OptionKind::Count);
const IMPORT: Form = form(
    "import",
    "import",
    "import some, as Markdown or JSON",
    &[optional("text", "the text to import", OptionKind::Text), optional("file", "a file to import", OptionKind::File)],
);
const EXPORT: Form = form("export", "export", "export all of them, as JSON", &[]);

/// All commands.
pub const COMMANDS: &[Command] = &[
    command(
        "help",
        "list the commands, or explain one",
        Access::Member,
        &[form("", "", "", &[optional("name", "the command to explain", OptionKind::Word)])],
    ),
    in_terminal("new", "begin another chat; I remember the old one", Access::Member, ALONE),
    in_terminal(
        "chats",
        "list your chats, or go to one",
        Access::Member,
        &[form("", "", "", &[optional("number", "the chat to go to", OptionKind::Count)])],
    ),
    command(
        "persona",
        "choose who answers in this chat",
        Access::Member,
        &[
            form("list", "list", "list the personas", &[]),
            form("use", "use", "let another persona answer here", &[PERSONA]),
            of_admins("invite", "add a persona that answers when called by name", &[PERSONA]),
            of_admins("dismiss", "stop an invited persona from answering here", &[PERSONA]),
            form("show", "show", "show a persona", &[PERSONA]),
            form("export", "export", "get the file of a persona", &[PERSONA]),
            form("template", "template", "get a file to start your own persona with", &[]),
            of_admins(
                "upload",
                "add a persona to this place",
                &[needed("file", "a persona as .md, or a card as .json, .png or .charx", OptionKind::File)],
            ),
            of_admins(
                "edit",
                "change a persona of this place; old versions stay",
                &[PERSONA, optional("text", "its whole file", OptionKind::Page)],
            ),
            for_admins("confirm", "confirm", "accept the upload"),
            for_admins("cancel", "cancel", "discard the upload"),
            of_admins("rollback", "return to the version before", &[PERSONA]),
            of_admins("remove", "remove a persona of this place", &[PERSONA]),
            of_admins("portrait", "draw a portrait of a persona of this place", &[PERSONA]),
            of_admins(
                "face",
                "make a portrait the face of its persona",
                &[optional("number", "the number of the portrait; without it, the newest one", OptionKind::Count)],
            ),
        ],
    ),
    in_terminal(
        "as",
        "speak as somebody else, in a chat of their own",
        Access::Operator,
        &[form("", "", "", &[needed("name", "who speaks", OptionKind::Text)])],
    ),
    command("why", "show what the last reply rests on, or one memory with its place", Access::Member, WHY),
    command(
        "branch",
        "continue this chat in another way; the old way stays",
        Access::Member,
        &[
            form(
                "new",
                "",
                "begin a branch",
                &[
                    needed("name", "its name", OptionKind::Word),
                    optional("back", "how many messages back it begins", OptionKind::Count),
                ],
            ),
            form("list", "list", "list the branches of this chat", &[]),
            form("switch", "switch", "continue on another branch", &[needed("name", "its name", OptionKind::Branch)]),
        ],
    ),
    command("regenerate", "answer the last message again", Access::Member, ALONE),
    command(
        "swipe",
        "choose among the answers to your last message",
        Access::Member,
        &[
            form("next", "next", "show the next answer", &[]),
            form("previous", "previous", "show the answer before", &[]),
        ],
    ),
    command(
        "remember",
        "keep something for good",
        Access::Member,
        &[form("", "", "", &[needed("text", "what to keep", OptionKind::Text)])],
    ),
    command("me", "show what I keep in mind about you", Access::Member, ALONE),
    command(
        "memory",
        "search and manage what I remember",
        Access::Member,
        &[
            SEARCH,
            form("stats", "stats", "count memories by kind and by week", &[THEME]),
            form("pin", "pin", "keep something that you said for good", &[MEMORY]),
            form("update", "update", "replace one of your statements with a new text", &[MEMORY, NEW_TEXT]),
            form("replace", "replace", "let a newer statement replace an older one", &[MEMORY, NEWER]),
            form("current", "current", "make a statement current again that you replaced", &[MEMORY]),
            form("rate", "rate", "say whether a memory helps here; ID may be reply", &[MEMORY, RATING]),
            form("learnt", "learnt", "show what I learnt in the last seven days", &[]),
            form("known", "known", "list what was said in three or more chats", &[PAGE]),
            form("known-off", "known", "let your own words count as known, or not", &[MEMORY, COUNTS]),
            form("themes", "themes", "show what is talked about most", &[PAGE]),
            form("episodes", "episodes", "list conversations and how they ended", EPISODES),
            form("open", "open", "list what is still open in conversations", EPISODES),
            form("files", "files", "list the files that may be shown here", &[]),
            form("file", "file", "send you a kept file", &[needed("id", "its id or its name", OptionKind::Text)]),
            form("export", "export", "export everything about you, as a file", &[]),
            form("export-files", "export", "get your files and pictures, in parts", &[FILES]),
        ],
    ),
    command(
        "graph",
        "show the relations of people, places and things",
        Access::Member,
        &[
            form("list", "list", "list the most mentioned names", &[]),
            form("show", "", "show the relations of a name", &[needed("name", "the name", OptionKind::Text)]),
            form("merge", "merge", "let two names mean the same", &[TWO_NAMES]),
            form("split", "split", "let two names mean different people or things", &[TWO_NAMES]),
        ],
    ),
    command(
        "forget",
        "forget something for good, with a receipt",
        Access::Member,
        &[
            form("last", "last", "forget the last thing you said here", &[QUOTES]),
            form("memory", "", "forget one memory", &[MEMORY, QUOTES]),
            form("me", "me", "forget everything you ever said to me", &[QUOTES]),
            form("chat", "chat", "forget everything in this chat", &[QUOTES]),
        ],
    ),
    command(
        "dream",
        "read my dreams",
        Access::Member,
        &[
            form("list", "list", "list the newest dreams", &[]),
            form("show", "show", "show a whole dream", &[NUMBER]),
            SEARCH,
            IMPORT,
            EXPORT,
        ],
    ),
    command(
        "journal",
        "read my journal and diary, or import one",
        Access::Member,
        &[
            form("list", "list", "list the newest entries", &[]),
            form("show", "show", "show a whole entry", &[NUMBER]),
            SEARCH,
            form("trigger", "trigger", "let me write an entry now", &[]),
            IMPORT,
            EXPORT,
            form("where", "channel", "show where dreams and entries are posted", &[]),
            for_admins("here", "channel here", "post dreams and entries in this chat"),
            for_admins("off", "channel off", "stop posting them"),
        ],
    ),
    command(
        "garden",
        "read the short pieces that I write",
        Access::Member,
        &[
            form("list", "list", "list the newest pieces", &[]),
            form("show", "show", "show a whole piece", &[NUMBER]),
            SEARCH,
            form("write", "write", "let me write a piece now", &[]),
            form("publish", "publish", "post a piece where the journal is posted", &[NUMBER]),
            IMPORT,
            EXPORT,
        ],
    ),
    IMAGINE,
    PICTURE,
    GALLERY,
    command(
        "checkin",
        "let me ask how you are after days of silence",
        Access::Member,
        &[
            form("show", "", "show whether I ask", &[]),
            form("on", "on", "ask me", &[optional("days", "after how many days of silence", OptionKind::Count)]),
            form("off", "off", "do not ask me", &[]),
        ],
    ),
    command(
        "hearth",
        "decide whether I learn from what you say",
        Access::Member,
        &[
            form("status", "status", "show whether I learn here and from you", &[]),
            form("opt-in", "opt-in", "let me learn from what you say", &[]),
            form("opt-out", "opt-out", "stop, and undo what I learned from you", &[]),
            form("history", "history", "show what I learned here", &[]),
            form("rollback", "rollback", "undo what I learned here last; for admins in shared places", &[]),
        ],
    ),
    command(
        "link",
        "link your accounts, so that I know you on all of them",
        Access::Member,
        &[
            form("new", "", "get a code to enter from your other account", &[]),
            form("code", "", "enter the code of your other account", &[needed("code", "the code", OptionKind::Word)]),
            form("confirm", "confirm", "link the account whose code you entered", &[]),
            form("list", "list", "list the accounts linked with this one", &[]),
            form(
                "remove",
                "remove",
                "unlink an account; without a name, this one",
                &[optional("name", "the account, or `all`", OptionKind::Text)],
            ),
        ],
    ),
    command("notes", "show my working notes of this chat", Access::Member, ALONE),
    command(
        "tag",
        "tag this chat, and find chats by their tags",
        Access::Member,
        &[
            form("list", "list", "list the tags of this chat", &[]),
            form("find", "find", "find chats with a tag", &[TAG]),
            of_admins("add", "give this chat a tag", &[TAG]),
            of_admins("remove", "remove a tag from this chat", &[TAG]),
        ],
    ),
    command(
        "group",
        "group chats that belong together",
        Access::Member,
        &[
            form("list", "list", "list the groups and their chats", &[]),
            of_admins(
                "join",
                "put this chat into a group",
                &[needed("name", "the name of the group", OptionKind::Text)],
            ),
            of_admins("leave", "take this chat out of its group", &[]),
        ],
    ),
    command(
        "privacy",
        "show or change what I keep, and who may see it",
        Access::Member,
        &[
            form("show", "", "show what I keep, and who may see it", &[]),
            form("addressed", "addressed", "keep only what you say to me", &[]),
            form("everything", "everything", "keep everything that I read from you", &[]),
        ],
    ),
    command(
        "settings",
        "show the settings of this chat",
        Access::Member,
        &[
            form("show", "", "show the settings, and how to change each", &[]),
            form(
                "locale",
                "locale",
                "set the country of my crisis help lines",
                &[optional("locale", "such as en-GB, `none` for no country, or `default`", OptionKind::Word)],
            ),
        ],
    ),
    command(
        "status",
        "show my mood and energy, and what I feel towards you",
        Access::Member,
        &[form("", "", "", &[THEME])],
    ),
    command(
        "rules",
        "show and change what I do about certain messages",
        Access::Member,
        &[
            form("list", "list", "list the rules in force here", &[]),
            form(
                "add",
                "add",
                "add a rule: name, tags, feelings, text for the prompt",
                &[needed("rule", "such as `jokes joke,good_news warmth=0.1 Laugh along.`", OptionKind::Text)],
            ),
            form(
                "test",
                "test",
                "show which rules a message meets",
                &[needed("text", "the message", OptionKind::Text)],
            ),
            form("remove", "remove", "remove a rule", &[NAME]),
            form("restore", "restore", "restore a built-in rule", &[NAME]),
        ],
    ),
    command(
        "tune",
        "show and change the numbers of my mind and writing",
        Access::Member,
        &[form(
            "",
            "",
            "",
            &[
                optional("name", "the number to show or change", OptionKind::Word),
                optional("value", "the new value, or `default`", OptionKind::Word),
            ],
        )],
    ),
    command(
        "answer",
        "choose when I answer in this chat",
        Access::Admin,
        &[
            for_admins("show", "", "show when I answer"),
            for_admins("addressed", "addressed", "answer when I am mentioned, replied to or called"),
            for_admins("always", "always", "answer everything that is not meant for somebody else"),
            for_admins("never", "never", "never answer"),
        ],
    ),
    command(
        "model",
        "show or choose the model that answers",
        Access::Member,
        &[
            form("show", "", "show the model in use", &[]),
            form("list", "list", "list the known models", &[]),
            of_model("use", "let another model answer"),
            of_model("pull", "download a model"),
            of_model("remove", "remove the file of a model"),
        ],
    ),
    VOICE,
    in_terminal("quit", "leave the terminal", Access::Member, ALONE),
];

/// Actions on a message that somebody points at.
pub const MESSAGE_ACTIONS: &[MessageAction] = &[
    MessageAction { name: "Remember this", line: "/remember", asks: None },
    MessageAction { name: "Forget this", line: "/forget", asks: None },
    MessageAction {
        name: "Branch from here",
        line: "/branch",
        asks: Some(needed("name", "the name of the branch", OptionKind::Word)),
    },
    MessageAction { name: "Why?", line: "/why", asks: None },
    MessageAction { name: "Remix picture", line: "/picture remix", asks: Some(REMIX_PROMPT) },
];
