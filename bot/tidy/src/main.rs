//! Checks the project's rules, or writes the files that are generated from code.

use std::path::Path;
use std::process::ExitCode;

use azera_config::Config;
use azera_tidy::{Tree, check};

/// The checkout is the current directory, because a build can outlive the folder it was made in.
const ROOT: &str = ".";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => tidy(),
        ["bless"] => bless(),
        _ => {
            eprintln!("azera-tidy checks the rules of the house; `azera-tidy bless` writes azera.example.toml");
            ExitCode::from(2)
        }
    }
}

fn tidy() -> ExitCode {
    match Tree::read(Path::new(ROOT)) {
        Err(error) => fail(&error),
        Ok(tree) => {
            let findings = check(&tree);
            for finding in &findings {
                println!("{finding}");
            }
            match findings.len() {
                0 => {
                    println!("the house is in order");
                    ExitCode::SUCCESS
                }
                count => {
                    eprintln!("{count} of its rules broken");
                    ExitCode::FAILURE
                }
            }
        }
    }
}

fn bless() -> ExitCode {
    match std::fs::write(Path::new(ROOT).join("azera.example.toml"), Config::example()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("azera-tidy: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}
