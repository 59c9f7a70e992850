//! What the host says of its memory.

/// Whether less than a thirtieth of the host's memory is available. Unknown hosts are never short.
pub(super) fn is_short_of_memory() -> bool {
    std::fs::read_to_string("/proc/meminfo").is_ok_and(|text| is_short(&text))
}

fn is_short(meminfo: &str) -> bool {
    let kilobytes = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    };
    match (kilobytes("MemTotal"), kilobytes("MemAvailable")) {
        (Some(total), Some(available)) => available < total / 30,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_meminfo() {
        assert!(is_short("MemTotal:       3000 kB\nMemFree: 1 kB\nMemAvailable:     99 kB\n"));
        assert!(!is_short("MemTotal:       3000 kB\nMemAvailable:     100 kB\n"));
        assert!(!is_short("nonsense"));
    }
}
