//! Errors for what the quick build leaves out.
//!
//! `make run` builds none of the features in this crate's `Cargo.toml`, so that the first chat starts soon. `make
//! install` and `make test` build all of them. A module `x_left_out` has the functions of `x` and returns these errors.

use anyhow::anyhow;

/// How to get the full build.
pub const INSTALL: &str = "build all of Azera with `make install`";

/// Returns the error for a missing feature. `wanted` is a clause such as "Matrix is configured".
pub fn error(wanted: &str, feature: &str) -> anyhow::Error {
    anyhow!("{wanted}, but this build does not include {feature}: {INSTALL}")
}
