//! The declaration of `/voice`.

use azera_adapter::{Access, Command, OptionKind};

use super::declared::{command, form, needed, optional};

pub(super) const VOICE: Command = command(
    "voice",
    "talk with me in a voice channel, and choose when I speak my replies",
    Access::Member,
    &[
        form("settings", "settings", "show how I hear and speak here, and change it", &[]),
        form("join", "join", "let me join the voice channel that you are in", &[]),
        form("leave", "leave", "let me leave your voice channel", &[]),
        form(
            "say",
            "say",
            "let me say something, in a call or as a recording",
            &[
                needed("text", "what I say", OptionKind::Text),
                optional("voice", "the voice that says it; typed as `--voice NAME`", OptionKind::Voice),
            ],
        ),
        form("stop", "stop", "stop what I am saying", &[]),
        form("mute", "mute", "mute me until you unmute me", &[]),
        form("unmute", "unmute", "unmute me", &[]),
        form(
            "consent",
            "consent",
            "choose whether I may hear you there",
            &[optional("choice", "`yes` or `no`", OptionKind::Word)],
        ),
        form(
            "captions",
            "captions",
            "show the words of the call in a thread",
            &[optional("choice", "`on` or `off`; `yes` or `no` for your own words", OptionKind::Word)],
        ),
        form(
            "record",
            "record",
            "record the call, if everybody in it agrees",
            &[optional("choice", "`on` or `off`; `yes` or `no` for your own voice", OptionKind::Word)],
        ),
        form(
            "recordings",
            "recordings",
            "list, get or remove your recordings",
            &[
                optional("what", "`get` or `remove`", OptionKind::Word),
                optional("number", "the number of the recording", OptionKind::Count),
            ],
        ),
        form("transcript", "transcript", "show what was said, as far as you heard it", &[]),
        form(
            "replies",
            "replies",
            "show or choose when I also speak my replies",
            &[optional("when", "auto, always or never", OptionKind::Word)],
        ),
        form("samples", "samples list", "list recordings of voices", &[]),
        form(
            "sample-add",
            "samples add",
            "give a recording of a voice",
            &[
                needed("name", "its name", OptionKind::Word),
                optional("of", "whose voice it is, as a mention; your own if left out", OptionKind::Word),
                optional("recording", "3 to 30 s of clear speech; your newest one here if left out", OptionKind::Sound),
            ],
        ),
        form(
            "sample-use",
            "samples use",
            "let me speak with a recorded voice here",
            &[needed("name", "its name, or `default`", OptionKind::Word)],
        ),
        form("sample-remove", "samples remove", "delete a recording", &[needed("name", "its name", OptionKind::Word)]),
    ],
);
