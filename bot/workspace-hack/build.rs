//! Nothing. It has the build-dependencies of this crate compiled.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
