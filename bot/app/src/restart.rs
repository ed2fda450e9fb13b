//! Sets variables that libraries of the system read before `main`. The process restarts itself with them.
//!
//! libgomp lets a finished thread spin for some milliseconds before it sleeps. When another process wants the
//! processor, the spinning thread takes time from the very thread it waits for. Two commands side by side then took
//! more than thirty times as long as one (`bot/docs/BENCHMARKS.md`).
//!
//! glibc gives a freed block back to the system if it was as large as a threshold, and keeps smaller ones. It raises the
//! threshold up to 32 MB as blocks are freed, unless a variable sets it. LoRAs and the buffers of a context are often
//! smaller than that. Without the variable, several times the memory of one LoRA stayed with the process.

/// A variable that is set for the process.
#[cfg(target_os = "linux")]
struct Variable {
    name: &'static str,
    value: &'static str,
    /// A user's own setting of one of these wins.
    own: [&'static str; 2],
}

#[cfg(target_os = "linux")]
const VARIABLES: [Variable; 2] = [
    // About 0.1 ms in all. Measured on two cores, it is hardly slower when nothing else runs.
    Variable { name: "GOMP_SPINCOUNT", value: "2000", own: ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"] },
    // In bytes.
    Variable { name: "MALLOC_MMAP_THRESHOLD_", value: "1048576", own: ["MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"] },
];

/// Set for the restarted process. The system takes some variables away from a program with rights of its own, such as that
/// to use a low port. Without this mark, it would restart for ever.
#[cfg(target_os = "linux")]
const RESTARTED: &str = "AZERA_RESTARTED";

/// Restarts the process once with the variables that the user has not set. If the restart fails, the process continues.
#[cfg(target_os = "linux")]
pub fn restart_with_variables() {
    use std::os::unix::process::CommandExt;

    if azera_config::is_in_environment(RESTARTED) {
        return;
    }
    let mut args = std::env::args_os();
    let (Some(name), Ok(program)) = (args.next(), std::env::current_exe()) else { return };
    let set = |variable: &&Variable| !variable.own.iter().any(|own| azera_config::is_in_environment(own));
    let missing: Vec<_> = VARIABLES.iter().filter(set).map(|variable| (variable.name, variable.value)).collect();
    if !missing.is_empty() {
        // `exec` returns only if it failed.
        let _exec_failed =
            std::process::Command::new(program).arg0(name).args(args).envs(missing).env(RESTARTED, "1").exec();
    }
}

/// Other systems use another OpenMP library and another allocator.
#[cfg(not(target_os = "linux"))]
pub fn restart_with_variables() {}
