//! Recordings of calls on disk: of each an Ogg Opus file, and a JSON file with the people who may have it.
//!
//! [`RecordingFolder`] lists, gives and removes them, each for the people in it alone. [`NewRecording`] is one that is
//! being made. `ogg_file` completes a file that a crash cut short, and splits one that is too large to send. This crate
//! encodes and decodes no sound.

mod about;
mod folder;
mod new_recording;
mod ogg_file;

pub use about::About;
pub use folder::RecordingFolder;
pub use new_recording::NewRecording;
