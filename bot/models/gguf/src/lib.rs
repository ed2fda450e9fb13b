//! The GGUF model file format, version 3: a bounded reader of headers, a writer, and conversion to Q8_0.
//!
//! A file consists of magic, version, tensor count, pair count, metadata pairs, tensor descriptions, and the tensors'
//! bytes, each at a multiple of the alignment. Everything is little-endian. ggml's `docs/gguf.md` and `include/gguf.h`
//! describe the format.
//!
//! This crate does not run models. Start with [`GgufHeader`] for facts about a model, [`Layout`] to find its tensors,
//! and [`GgufFile`] to write one.

mod error;
mod layout;
mod quantize;
mod read;
mod skeleton;
mod tensor_type;
mod vocabulary;
mod widen;
mod write;

pub use error::GgufError;
pub use layout::{Layout, TensorAt};
pub use quantize::{Q8_0_BLOCK, quantize_q8_0};
pub use read::{GgufHeader, MAX_HEADER_BYTES, MAX_METADATA_PAIRS, MAX_TENSORS};
pub use skeleton::Skeleton;
pub use tensor_type::TensorType;
pub use vocabulary::repeated_token;
pub use widen::q4_1_to_q8_0;
pub use write::{GgufFile, Tensor, Value};

/// The first four bytes of every GGUF file.
const MAGIC: [u8; 4] = *b"GGUF";
/// The version that is written, and the newest that is read.
const VERSION: u32 = 3;
/// The alignment of tensor data, in bytes, if the file sets no other.
const ALIGNMENT: u64 = 32;

/// The number of each metadata value type, from `include/gguf.h`.
mod value_type {
    pub(crate) const U8: u32 = 0;
    pub(crate) const I8: u32 = 1;
    pub(crate) const U16: u32 = 2;
    pub(crate) const I16: u32 = 3;
    pub(crate) const U32: u32 = 4;
    pub(crate) const I32: u32 = 5;
    pub(crate) const F32: u32 = 6;
    pub(crate) const BOOL: u32 = 7;
    pub(crate) const STRING: u32 = 8;
    pub(crate) const ARRAY: u32 = 9;
    pub(crate) const U64: u32 = 10;
    pub(crate) const I64: u32 = 11;
    pub(crate) const F64: u32 = 12;
}

/// Rounds `value` up to a multiple of `alignment`; `None` past `u64::MAX`.
fn align(value: u64, alignment: u64) -> Option<u64> {
    value.checked_next_multiple_of(alignment)
}
