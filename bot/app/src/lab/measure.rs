//! Statistics and measurements for `azera eval` and `azera bench`.

/// Returns the value that a `share` (0 to 1) of the values do not exceed; 0 if there are none.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(last)).copied().unwrap_or(0.0)
}

pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// Resident memory of this process in MB (2^20 bytes).
#[derive(Debug, Clone, Copy, Default)]
pub struct Resident {
    /// All resident memory, including mapped files.
    pub all: f64,
    /// Memory without a file behind it, which the system cannot drop.
    pub anonymous: f64,
    /// The highest resident memory so far.
    #[cfg_attr(not(feature = "learning"), expect(dead_code, reason = "the benchmarks of learning read it"))]
    pub peak: f64,
}

impl Resident {
    /// Reads `/proc/self/status`; `None` where there is no `/proc`.
    pub fn now() -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes: f64 = line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse().ok()?;
            Some(kilobytes / 1024.0)
        };
        Some(Self { all: field("VmRSS")?, anonymous: field("RssAnon")?, peak: field("VmHWM")? })
    }
}

/// Returns the total size of all files under a folder, in MB (2^20 bytes).
pub fn folder_mb(dir: &std::path::Path) -> std::io::Result<f64> {
    let mut bytes = 0;
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.metadata()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else {
                bytes += kind.len();
            }
        }
    }
    Ok(bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_from_the_values() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(median(&values), 51.0);
        assert_eq!(percentile(&values, 0.99), 100.0);
        assert_eq!(percentile(&values, 1.0), 100.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
    }
}
