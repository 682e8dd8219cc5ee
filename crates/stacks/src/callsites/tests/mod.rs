//! Tests on programs compiled here, and on this program itself.

mod address_maps;
mod debug_information;
mod hostile_files;
mod languages;
mod late_names;
mod layers;
mod own_program;
mod program;
mod real_jobs;
mod unwinding;
mod vdso;

use std::time::Duration;

/// Time that this thread has had on a processor: whatever else the machine does is not in it.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.try_into().unwrap()
}
