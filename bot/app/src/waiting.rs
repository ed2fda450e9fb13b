//! How llama.cpp's threads wait for one another.
//!
//! libgomp has a thread that is done ask some milliseconds long whether the others are, before it sleeps. Where something else wants the
//! processor, too, it so takes from the very thread it waits for: two commands side by side took more than thirty times as
//! long as one (`bot/docs/BENCHMARKS.md`). libgomp reads how often to ask before `main`, so the process begins once more, as itself.

/// How often it asks, in the order of 0.1 ms: hardly slower where nothing else runs, measured on two cores.
#[cfg(target_os = "linux")]
const SPINS: &str = "2000";

/// What says it to libgomp, and what says more, which somebody may have set.
#[cfg(target_os = "linux")]
const SAYS: [&str; 2] = ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"];

/// Begins the process once more, where nobody has said how its threads should wait. Where that cannot be done it goes on.
#[cfg(target_os = "linux")]
pub fn briefly() {
    use std::os::unix::process::CommandExt;

    let mut args = std::env::args_os();
    let (Some(name), Ok(program)) = (args.next(), std::env::current_exe()) else { return };
    if !SAYS.iter().any(|says| azera_config::is_in_environment(says)) {
        // It comes back only where nothing was begun.
        let _not_begun = std::process::Command::new(program).arg0(name).args(args).env(SAYS[0], SPINS).exec();
    }
}

/// Elsewhere another library does it.
#[cfg(not(target_os = "linux"))]
pub fn briefly() {}
