//! Errors for the parts that a build leaves out.
//!
//! `make run` builds none of the features in this crate's `Cargo.toml`, so that the first chat starts soon. `make
//! install` and `make test` build all of them. A module `x_left_out` has the functions of `x` and returns these errors.

use anyhow::anyhow;

/// How to get every part.
pub const INSTALL: &str = "build all of Azera with `make install`";

/// Returns the error for a missing part. `wanted` is a clause such as "Matrix is configured".
pub fn error(wanted: &str, part: &str) -> anyhow::Error {
    anyhow!("{wanted}, but this build does not include {part}: {INSTALL}")
}
