//! What the kernel tells of threads: an iterator over tasks, samples by perf events, breakpoints of the processor,
//! and, where neither is permitted, ptrace.

mod fields;
pub(crate) mod iterator;
pub(crate) mod returned;
pub(crate) mod sample;
mod sample_record;
pub(crate) mod stop;
