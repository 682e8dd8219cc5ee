//! `mpiprobe doctor` as it is typed: what it finds here, and what it says of processes.

mod processes;
mod run;
mod service;
mod system;

use libtest_mimic::Arguments;

fn main() {
    let mut arguments = Arguments::from_args();
    // Each run of the doctor measures what a call costs: not beside others.
    arguments.test_threads.get_or_insert(1);
    let tests = system::tests().into_iter().chain(processes::tests()).chain(service::tests());
    libtest_mimic::run(&arguments, tests.collect()).exit();
}
