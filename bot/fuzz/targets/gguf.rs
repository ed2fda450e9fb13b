//! Headers of GGUF model files.
#![no_main]

use azera_model_registry::GgufHeader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    GgufHeader::read(bytes).ok();
});
