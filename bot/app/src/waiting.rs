//! Sets how long llama.cpp's threads spin before they sleep.
//!
//! libgomp lets a finished thread spin for some milliseconds before it sleeps. When another process wants the
//! processor, the spinning thread takes time from the very thread it waits for. Two commands side by side then took
//! more than thirty times as long as one (`bot/docs/BENCHMARKS.md`). libgomp reads the spin count before `main`, so the
//! process restarts itself with the variable set.

/// Number of spins, about 0.1 ms in all. Measured on two cores, it is hardly slower when nothing else runs.
#[cfg(target_os = "linux")]
const SPIN_COUNT: &str = "2000";

/// The variable for the spin count, and one that also controls waiting. A user's own setting of either wins.
#[cfg(target_os = "linux")]
const SPIN_VARIABLES: [&str; 2] = ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"];

/// Restarts the process with a short spin count, unless the user has set one. If the restart fails, the process
/// continues.
#[cfg(target_os = "linux")]
pub fn restart_with_short_spins() {
    use std::os::unix::process::CommandExt;

    let mut args = std::env::args_os();
    let (Some(name), Ok(program)) = (args.next(), std::env::current_exe()) else { return };
    if !SPIN_VARIABLES.iter().any(|variable| azera_config::is_in_environment(variable)) {
        // `exec` returns only if it failed.
        let _exec_failed =
            std::process::Command::new(program).arg0(name).args(args).env(SPIN_VARIABLES[0], SPIN_COUNT).exec();
    }
}

/// Other systems use another OpenMP library.
#[cfg(not(target_os = "linux"))]
pub fn restart_with_short_spins() {}
