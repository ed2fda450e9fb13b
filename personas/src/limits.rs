//! All limits of this crate. Sizes are in bytes unless the name says otherwise.

/// Largest persona file, and largest normal form of a persona.
pub const MAX_FILE_BYTES: usize = 64 * 1024;
/// Largest front matter.
pub const MAX_FRONT_MATTER_BYTES: usize = 16 * 1024;
/// Deepest nesting of lists and mappings in the front matter; the known keys need 3.
pub const MAX_FRONT_MATTER_DEPTH: usize = 6;
/// Most problems reported for one file; the rest are only counted.
pub const MAX_PROBLEMS: usize = 100;
/// Longest id of a persona.
pub const MAX_ID_CHARS: usize = 48;
/// Longest name of a persona.
pub const MAX_NAME_CHARS: usize = 64;
/// Longest tag of a language.
pub const MAX_LANGUAGE_CHARS: usize = 35;
/// Longest title of a section, subsection or example.
pub const MAX_TITLE_CHARS: usize = 120;
/// Longest `model` or `voice` setting.
pub const MAX_REFERENCE_CHARS: usize = 128;
/// Longest style of a persona's pictures, and longest list of what is not drawn. Models that draw read about 75 words.
pub const MAX_PICTURE_STYLE_CHARS: usize = 200;
/// Longest `avatar` setting (a file name or an `https` address).
pub const MAX_AVATAR_CHARS: usize = 512;
/// Most wake names besides the persona's own name.
pub const MAX_WAKE_NAMES: usize = 8;
/// Longest wake name.
pub const MAX_WAKE_NAME_CHARS: usize = 32;
/// Longest axis, primary or secondary of a style blend.
pub const MAX_BLEND_NAME_CHARS: usize = 48;
/// Most sentiments of a persona's own.
pub const MAX_SENTIMENTS: usize = 8;
/// Most directives of one sentiment, and of a persona that is mixed into another.
pub const MAX_DIRECTIVES: usize = 8;
/// Longest directive. It is short because prompts of small models contain it.
pub const MAX_DIRECTIVE_CHARS: usize = 160;
/// Most sections (`## ...`) of one file.
pub const MAX_SECTIONS: usize = 64;
/// Most task behaviours of one file.
pub const MAX_TASKS: usize = 32;
/// Most cues of one task behaviour.
pub const MAX_CUES: usize = 64;
/// Longest cue.
pub const MAX_CUE_CHARS: usize = 48;
/// Most example interactions of one file.
pub const MAX_EXAMPLES: usize = 32;
/// Most words of the `Brief`, written or derived, because every prompt of a small model contains it.
pub const MAX_BRIEF_WORDS: usize = 90;
/// Characters of a message that are searched for cues.
pub const MAX_CUE_SCAN_CHARS: usize = 8 * 1024;

/// Largest uploaded character card, with its picture.
pub const MAX_CARD_BYTES: usize = 8 * 1024 * 1024;
/// Largest JSON of a character card, decoded and inflated.
pub const MAX_CARD_JSON_BYTES: usize = 1024 * 1024;
/// Largest text of a PNG chunk, inflated: the JSON above in base64, with space for line breaks.
pub const MAX_CHUNK_TEXT_BYTES: usize = MAX_CARD_JSON_BYTES / 3 * 4 + 64 * 1024;
/// Most files in a CharX archive.
pub const MAX_CHARX_FILES: usize = 4096;
/// Largest width or height of a card's picture, in pixels.
pub const MAX_AVATAR_SIDE_PX: u32 = 8192;
/// Largest width times height of a card's picture.
pub const MAX_AVATAR_PIXELS: u64 = 25_000_000;
/// Longest description from a card; a longer one is cut, and the whole is kept in the card's extras.
pub const MAX_CARD_DESCRIPTION_BYTES: usize = 24 * 1024;
/// Longest other text field from a card, cut likewise; all together stay below [`MAX_FILE_BYTES`].
pub const MAX_CARD_FIELD_BYTES: usize = 8 * 1024;
/// Most greetings (first message, alternates, group greetings) from one card.
pub const MAX_GREETINGS: usize = 256;
/// Most notes of one import.
pub const MAX_NOTES: usize = 100;

/// Most entries of one lorebook that are used; the first ones win.
pub const MAX_LORE_ENTRIES: usize = 4096;
/// Most keys, and most secondary keys, of a lorebook entry that are tried.
pub const MAX_LORE_KEYS: usize = 64;
/// Most keys that one call of [`crate::Lorebook::matching`] tries: at the scan limit below, tens of milliseconds.
pub const MAX_LORE_KEYS_TRIED: usize = 16 * 1024;
/// Bytes at the end of the text that are searched for lorebook keys.
pub const MAX_LORE_SCAN_BYTES: usize = 16 * 1024;
/// Most entries that one call of [`crate::Lorebook::matching`] returns.
pub const MAX_LORE_MATCHES: usize = 24;
/// Most bytes of content that one call of [`crate::Lorebook::matching`] returns.
pub const MAX_LORE_MATCH_BYTES: usize = 16 * 1024;
/// Most entries with regular expressions that one call tries, because each is compiled.
pub const MAX_LORE_REGEX_ENTRIES: usize = 128;
/// Largest compiled lorebook pattern.
pub const MAX_LORE_REGEX_BYTES: usize = 256 * 1024;
/// Most messages that are searched for keys, whatever `scan_depth` says.
pub const MAX_LORE_DEPTH: usize = 20;
/// Messages that are searched for keys if a book does not say how many.
pub const DEFAULT_LORE_DEPTH: usize = 4;
/// Most messages back from which an entry's `sticky` and `cooldown` are followed.
pub const MAX_LORE_TIMED_MESSAGES: usize = 64;
/// Most rounds in which the content of matching entries may activate others.
pub const MAX_LORE_ROUNDS: usize = 3;
