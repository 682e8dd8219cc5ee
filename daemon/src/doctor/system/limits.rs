//! Open files and memory.

use mpiprobe_common::{
    Descriptor, FUNCTION_SLOTS, FunctionStats, InnerKey, InnerStats, Layout, PROCESS_SLOTS, ProcessCounters,
    STATS_ENTRIES, THREAD_CACHE, THREAD_SLOTS, Target, ThreadState,
};
use mpiprobe_model::Check;
use rustix::process::{Resource, getrlimit};
use serde_json::json;

use crate::doctor::read::read_text;

/// Files that mpiprobe holds open for each MPI process.
const FILES_PER_PROCESS: u64 = 2;
/// Files for everything else: tables, links, terminal.
const OTHER_FILES: u64 = 64;
/// Processes of a large node.
const MANY_PROCESSES: u64 = 256;

/// What an entry of a hash table takes besides key and value, in bytes (kernel/bpf/hashtab.c: struct htab_elem, and a
/// bucket of 16 bytes).
const HASH_ENTRY: u64 = 48 + 16;

pub(super) fn examine() -> Vec<Check> {
    let available = read_text("/proc/meminfo").ok().as_deref().and_then(available_memory);
    // mpiprobe raises its own limit as far as it may.
    vec![open_files(getrlimit(Resource::Nofile).maximum), table_memory(table_bytes(), available)]
}

fn open_files(limit: Option<u64>) -> Check {
    let Some(limit) = limit else {
        return Check::ok("open-files", "unlimited");
    };
    let processes = limit.saturating_sub(OTHER_FILES) / FILES_PER_PROCESS;
    let finding = format!("{limit} open files: enough for {processes} MPI processes");
    let check = if processes >= MANY_PROCESSES {
        Check::ok("open-files", finding)
    } else {
        Check::limited(
            "open-files",
            finding,
            "raise the hard limit: ulimit -Hn 65536 as root, or LimitNOFILE= of the service",
        )
    };
    check.with(json!({ "limit": limit, "processes": processes }))
}

/// Bytes of all tables at their default sizes.
fn table_bytes() -> u64 {
    fn array<Value>(entries: u32) -> u64 {
        u64::from(entries) * size_of::<Value>() as u64
    }
    fn hash<Key, Value>(entries: u32) -> u64 {
        u64::from(entries) * (HASH_ENTRY + (size_of::<Key>() + size_of::<Value>()) as u64)
    }
    array::<u64>(PROCESS_SLOTS * FUNCTION_SLOTS)
        + array::<ProcessCounters>(PROCESS_SLOTS)
        + array::<FunctionStats>(STATS_ENTRIES)
        + array::<Descriptor>(FUNCTION_SLOTS)
        + hash::<u32, Target>(PROCESS_SLOTS)
        + array::<ThreadState>(THREAD_SLOTS)
        + hash::<u64, u32>(THREAD_SLOTS)
        + array::<u32>(THREAD_SLOTS + THREAD_CACHE)
        + array::<Layout>(PROCESS_SLOTS)
        + hash::<InnerKey, InnerStats>(STATS_ENTRIES)
}

fn table_memory(needed: u64, available: Option<u64>) -> Check {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let finding = format!("the tables take {} MiB of kernel memory while observing", mib(needed));
    let check = match available {
        Some(available) if available < needed.saturating_mul(2) => Check::limited(
            "table-memory",
            format!("{finding}, of {} MiB available", mib(available)),
            "make them smaller: --max-processes, --max-threads, --max-stats",
        ),
        _ => Check::ok("table-memory", finding),
    };
    check.with(json!({ "bytes": needed, "available": available }))
}

/// `MemAvailable` of meminfo, in bytes.
fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;

    #[test]
    fn two_files_for_each_process() {
        assert_eq!(open_files(Some(1024)).finding, "1024 open files: enough for 480 MPI processes");
        assert_eq!(open_files(Some(1024)).verdict, Verdict::Ok);
        assert_eq!(open_files(Some(256)).verdict, Verdict::Limited);
        assert_eq!(open_files(Some(10)).finding, "10 open files: enough for 0 MPI processes");
        assert_eq!(open_files(None).verdict, Verdict::Ok);
    }

    #[test]
    fn tables_take_some_tens_of_mebibytes() {
        assert!((20 << 20..80 << 20).contains(&table_bytes()), "{}", table_bytes());
    }

    #[test]
    fn little_memory_is_a_limit() {
        assert_eq!(table_memory(10 << 20, Some(19 << 20)).verdict, Verdict::Limited);
        assert_eq!(table_memory(10 << 20, Some(20 << 20)).verdict, Verdict::Ok);
        assert_eq!(
            table_memory((10 << 20) + 1, None).finding,
            "the tables take 11 MiB of kernel memory while observing"
        );
    }

    #[test]
    fn meminfo() {
        assert_eq!(available_memory("MemTotal:  8 kB\nMemAvailable:   16374 kB\n"), Some(16_374 << 10));
        assert_eq!(available_memory("MemTotal:  8 kB\n"), None);
        assert_eq!(available_memory("MemAvailable: 99999999999999999999 kB"), None);
    }
}
