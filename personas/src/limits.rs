//! Every limit of this crate, by name. Sizes are in bytes unless the name says otherwise.

/// A persona file, and the normal form of any persona.
pub const MAX_FILE_BYTES: usize = 64 * 1024;
/// The YAML between the `---` lines.
pub const MAX_FRONT_MATTER_BYTES: usize = 16 * 1024;
/// How deep lists and mappings may nest in the front matter; the deepest known key lies at 3.
pub const MAX_FRONT_MATTER_DEPTH: usize = 6;
/// Problems reported for one file; the rest are only counted, since nobody mends 100 at once.
pub const MAX_PROBLEMS: usize = 100;
/// Characters of a persona's id.
pub const MAX_ID_CHARS: usize = 48;
/// Characters of a persona's name.
pub const MAX_NAME_CHARS: usize = 64;
/// Characters of a section, subsection or example title.
pub const MAX_TITLE_CHARS: usize = 120;
/// Characters of the `model` and `voice` settings.
pub const MAX_REFERENCE_CHARS: usize = 128;
/// Characters of the `avatar` setting (a file name or an `https` address).
pub const MAX_AVATAR_CHARS: usize = 512;
/// Names that wake a persona, besides its own name.
pub const MAX_WAKE_NAMES: usize = 8;
/// Characters of one wake name.
pub const MAX_WAKE_NAME_CHARS: usize = 32;
/// Characters of a style-blend axis, primary or secondary.
pub const MAX_BLEND_NAME_CHARS: usize = 48;
/// Sentiments of its own that a persona may have.
pub const MAX_SENTIMENTS: usize = 8;
/// Directives of one sentiment, and of a persona that is mixed into another.
pub const MAX_DIRECTIVES: usize = 8;
/// Characters of one directive: it stands in prompts of small models.
pub const MAX_DIRECTIVE_CHARS: usize = 160;
/// Sections (`## ...`) in one file.
pub const MAX_SECTIONS: usize = 64;
/// Task behaviours in one file.
pub const MAX_TASKS: usize = 32;
/// Cue words of one task behaviour.
pub const MAX_CUES: usize = 64;
/// Characters of one cue.
pub const MAX_CUE_CHARS: usize = 48;
/// Example interactions in one file.
pub const MAX_EXAMPLES: usize = 32;
/// Words of the `Brief`, written or derived: it stands in every prompt of a small model.
pub const MAX_BRIEF_WORDS: usize = 90;
/// Characters of a message that are looked at when its task behaviour is chosen.
pub const MAX_CUE_SCAN_CHARS: usize = 8 * 1024;

/// A character card as uploaded, picture included.
pub const MAX_CARD_BYTES: usize = 8 * 1024 * 1024;
/// The JSON of a character card once decoded and inflated.
pub const MAX_CARD_JSON_BYTES: usize = 1024 * 1024;
/// The text of one PNG chunk once inflated: the JSON above in base64, with room for line breaks.
pub const MAX_CHUNK_TEXT_BYTES: usize = MAX_CARD_JSON_BYTES / 3 * 4 + 64 * 1024;
/// Width or height of a card's picture, in pixels.
pub const MAX_AVATAR_SIDE_PX: u32 = 8192;
/// Width times height of a card's picture.
pub const MAX_AVATAR_PIXELS: u64 = 25_000_000;
/// A card's description as it goes into a persona; what is longer is cut there and kept whole in the card's extras.
pub const MAX_CARD_DESCRIPTION_BYTES: usize = 24 * 1024;
/// Any other text field of a card as it goes into a persona, likewise; all together stay below [`MAX_FILE_BYTES`].
pub const MAX_CARD_FIELD_BYTES: usize = 8 * 1024;
/// Greetings (first message, alternates, group greetings) kept from one card.
pub const MAX_GREETINGS: usize = 256;
/// Notes made while one card is imported.
pub const MAX_NOTES: usize = 100;

/// Entries of one lorebook.
pub const MAX_LORE_ENTRIES: usize = 4096;
/// Keys, and secondary keys, of one lorebook entry that are tried.
pub const MAX_LORE_KEYS: usize = 64;
/// Keys that one call of [`crate::Lorebook::matching`] tries in all: at the scan limit below, tens of milliseconds.
pub const MAX_LORE_KEYS_TRIED: usize = 16 * 1024;
/// Bytes at the end of the text that lorebook keys are looked for in.
pub const MAX_LORE_SCAN_BYTES: usize = 16 * 1024;
/// Entries that one call of [`crate::Lorebook::matching`] returns.
pub const MAX_LORE_MATCHES: usize = 24;
/// Bytes of content that one call of [`crate::Lorebook::matching`] returns.
pub const MAX_LORE_MATCH_BYTES: usize = 16 * 1024;
/// Entries whose keys are regular expressions that one call tries, since each is compiled for it.
pub const MAX_LORE_REGEX_ENTRIES: usize = 128;
/// Memory one compiled lorebook pattern may take.
pub const MAX_LORE_REGEX_BYTES: usize = 64 * 1024;
/// Rounds in which the content of matched entries may wake further entries.
pub const MAX_LORE_ROUNDS: usize = 3;
