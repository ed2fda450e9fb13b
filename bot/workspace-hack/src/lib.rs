//! Nothing. The dependencies of this crate give shared crates the same features in every build; see its `Cargo.toml`.
