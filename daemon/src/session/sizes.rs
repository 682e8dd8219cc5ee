//! How large the tables of an observation are: as asked for, or by the number of processes that there are.

use std::{num::NonZero, thread};

use mpiprobe_common::{
    CALL_CACHE_SLOTS, Config, HANDLE_STORES, MANY_HANDLE_STORES, PHASE_SLOTS, PROCESS_SLOTS, REQUEST_SLOTS,
    STATS_ENTRIES, THREAD_SLOTS,
};

use super::options::Options;

/// Process slots for those that come later, and for further program images of those that are there: none is given back.
const LATER: u32 = 64;
/// Of those who are waited for and not there yet, so many are expected for each processor, and at least as many as on a small node.
const EXPECTED: (u32, u32) = (4, 64);

/// Entries of those tables that take most room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    processes: u32,
    threads: u32,
    stats: u32,
    phases: u32,
    requests: u32,
    handle_stores: u32,
    many_handle_stores: u32,
    call_caches: u32,
}

impl Sizes {
    /// What was asked for.
    pub(super) fn asked(options: &Options) -> Self {
        Self {
            processes: options.max_processes,
            threads: options.max_threads,
            stats: options.max_stats,
            phases: PHASE_SLOTS,
            requests: options.max_requests,
            handle_stores: HANDLE_STORES,
            many_handle_stores: MANY_HANDLE_STORES,
            call_caches: CALL_CACHE_SLOTS,
        }
    }

    /// For so many processes; 0: they are waited for. What was asked for in so many words stays.
    pub(super) fn of_job(options: &Options, processes: usize) -> Self {
        let expected = || {
            let (each, least) = EXPECTED;
            let processors = thread::available_parallelism().map_or(1, NonZero::get);
            u32::try_from(processors).unwrap_or(u32::MAX).saturating_mul(each).max(least)
        };
        let number = match u32::try_from(processes) {
            Ok(0) => expected(),
            number => number.unwrap_or(u32::MAX),
        };
        let asked = Self::asked(options);
        let sized = |asked: u32, default: u32, base: u32, each: u32| {
            if asked == default { base.saturating_add(number.saturating_mul(each)).min(default) } else { asked }
        };
        let of_service = |asked: u32, base: u32, each: u32| {
            if options.is_thrifty { sized(asked, asked, base, each) } else { asked }
        };
        Self {
            processes: sized(asked.processes, PROCESS_SLOTS, LATER, 4),
            threads: sized(asked.threads, THREAD_SLOTS, 256, 32),
            stats: if options.is_thrifty { sized(asked.stats, STATS_ENTRIES, 1024, 40) } else { asked.stats },
            phases: of_service(asked.phases, 256, 0),
            requests: if options.is_thrifty {
                sized(asked.requests, REQUEST_SLOTS, 8192, 1024)
            } else {
                asked.requests
            },
            handle_stores: of_service(asked.handle_stores, 64, 16),
            many_handle_stores: sized(asked.many_handle_stores, MANY_HANDLE_STORES, 8, 1),
            call_caches: of_service(asked.call_caches, 64, 16),
        }
    }

    /// Those of a configuration.
    pub(super) fn put_into(self, config: Config) -> Config {
        Config {
            process_slots: self.processes,
            thread_slots: self.threads,
            stats_entries: self.stats,
            phase_slots: self.phases,
            request_slots: self.requests,
            handle_stores: self.handle_stores,
            many_handle_stores: self.many_handle_stores,
            call_cache_slots: self.call_caches,
            ..config
        }
    }
}
