//! The configuration file: it parses, or gives an error that can be printed.
#![no_main]

use std::cell::RefCell;
use std::io::{Seek, Write};

use azera_config::Config;
use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;

thread_local! {
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().expect("a temporary file"));
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with_borrow_mut(|file| {
        file.as_file_mut().set_len(0).expect("an empty file");
        file.rewind().expect("the beginning");
        file.write_all(bytes).expect("written");
        if let Err(error) = Config::load(Some(file.path()), []) {
            assert!(!error.to_string().is_empty());
        }
    });
});
