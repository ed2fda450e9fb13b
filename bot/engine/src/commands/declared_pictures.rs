//! The commands about pictures.

use azera_adapter::{Access, Command, CommandOption, OptionKind};

use super::declared::{command, form, needed, of_admins, optional};

const WHICH_PICTURE: CommandOption = optional("number", "its number; the newest if left out", OptionKind::Count);
const START: CommandOption = optional("picture", "a picture to start from", OptionKind::Picture);
const FROM: CommandOption = optional("from", "the number of a drawn picture to start from", OptionKind::Setting);
const STYLE: CommandOption = optional("style", "`none` leaves the persona's own style out", OptionKind::Setting);
const STRENGTH: CommandOption =
    optional("strength", "how much of that picture is redrawn, from 0.05 to 1", OptionKind::Setting);
const MODEL: CommandOption = optional("model", "a model of the server that draws", OptionKind::PictureModel);
const SAMPLER: CommandOption = optional("sampler", "a sampler of the server that draws", OptionKind::Sampler);
const NEW_PROMPT: CommandOption = optional("prompt", "the new prompt", OptionKind::Page);
pub(super) const REMIX_PROMPT: CommandOption = needed("prompt", "what to make of it", OptionKind::Text);
const REMIX: &[CommandOption] = &[REMIX_PROMPT, START, FROM, STRENGTH, STYLE, MODEL, SAMPLER];

/// `/imagine`.
pub(super) const IMAGINE: Command = command(
    "imagine",
    "let me draw a picture",
    Access::Member,
    &[form(
        "",
        "",
        "",
        &[
            needed("prompt", "what to draw", OptionKind::Text),
            optional("size", "square, wide, tall, banner, small, or such as 768x512", OptionKind::Setting),
            optional("negative", "what not to draw", OptionKind::Setting),
            optional("seed", "a number; the same one draws the same picture", OptionKind::Setting),
            optional("steps", "more steps take longer", OptionKind::Setting),
            optional("guidance", "how strongly the prompt is followed, from 0 to 30", OptionKind::Setting),
            MODEL,
            SAMPLER,
            START,
            FROM,
            STRENGTH,
            STYLE,
        ],
    )],
);

/// `/picture`.
pub(super) const PICTURE: Command = command(
    "picture",
    "make pictures from others, take one back, and see what is allowed",
    Access::Member,
    &[
        form("again", "again", "draw it again with another seed", &[WHICH_PICTURE]),
        form("vary", "vary", "draw a variation of it", &[WHICH_PICTURE]),
        form("upscale", "upscale", "draw it at twice its size, where the server can", &[WHICH_PICTURE]),
        form("edit", "edit", "draw it with another prompt and the same seed", &[WHICH_PICTURE, NEW_PROMPT]),
        form("remix", "remix", "draw something new that starts from a picture", REMIX),
        form("pin", "pin", "keep its file longer than others", &[WHICH_PICTURE]),
        form("unpin", "unpin", "unpin it", &[WHICH_PICTURE]),
        form("delete", "delete", "delete it; for the person who asked, and admins", &[WHICH_PICTURE]),
        form("cancel", "cancel", "take back a picture that waits or is being drawn", &[WHICH_PICTURE]),
        form("queue", "queue", "show how many pictures wait", &[]),
        form("rules", "rules", "show what may be drawn here", &[]),
        of_admins(
            "adult",
            "allow nudity and sex in channels for adults",
            &[needed("choice", "`on` or `off`", OptionKind::Word)],
        ),
        of_admins("forbid", "never draw a word here", &[needed("word", "a word or a few", OptionKind::Text)]),
        of_admins("permit", "draw a forbidden word again", &[needed("word", "the word", OptionKind::Text)]),
    ],
);

const BY: CommandOption = optional("by", "only those of a person: a name, or `me`", OptionKind::Setting);
const IN: CommandOption = optional("in", "only those of a channel: its name, or `here`", OptionKind::Setting);

/// `/gallery`.
pub(super) const GALLERY: Command = command(
    "gallery",
    "see the pictures that may be shown here",
    Access::Member,
    &[
        form("list", "list", "list the newest pictures", &[optional("page", "the page", OptionKind::Count)]),
        form("pinned", "pinned", "list the pinned pictures", &[optional("page", "the page", OptionKind::Count)]),
        form("show", "show", "show a picture", &[needed("number", "its number", OptionKind::Count)]),
        form("by", "by", "list those of a person", &[needed("name", "a name, or `me`", OptionKind::Text), IN]),
        form("in", "in", "list those of a channel", &[needed("channel", "its name, or `here`", OptionKind::Text)]),
        form("search", "search", "search", &[needed("words", "the words to find", OptionKind::Text), BY, IN]),
    ],
);
