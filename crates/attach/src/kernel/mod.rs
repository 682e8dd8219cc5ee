//! The kernel seam: system calls that aya 0.14 does not make. Nothing outside this folder knows `bpf(2)` or
//! `perf_event_open(2)`; a later aya that makes them replaces it.

pub(crate) mod bpf;
pub(crate) mod breakpoints;
pub mod btf;
mod btf_types;
pub(crate) mod code_events;
pub(crate) mod code_record;
pub(crate) mod perf_event;
