//! `mpiprobe` on real jobs, compared with the independent count of the truth library.

mod attach_methods;
mod budget;
mod busy;
mod call_sites;
mod campaigns;
mod check;
mod communicators;
mod deadlock;
mod endings;
mod engines;
mod exact;
mod flight;
mod hang;
mod hang_causes;
mod jobs;
mod joining;
mod kills;
mod kubernetes;
mod layers;
mod libraries;
mod monitoring;
mod namespaces;
mod nodes;
mod odd;
mod output;
mod phases;
mod random;
mod recent;
mod recording;
mod refusals;
mod reports;
mod rights;
mod run;
mod service;
mod silent_files;
mod slurm;
mod ssh;
mod standstill;
mod systemd;
mod threads;
mod timeline;
mod times;
mod tools;
mod trace;
mod traffic;
mod view;
mod waits;
mod workers;

use libtest_mimic::{Arguments, Failed, Trial};
use mpiprobe_tests::{Language, Mpi, Requirement, requirement};

fn main() {
    let of_mpi = |mpi| {
        [
            budget::tests(mpi),
            busy::tests(mpi),
            call_sites::tests(mpi),
            campaigns::tests(mpi),
            communicators::tests(mpi),
            endings::tests(mpi),
            engines::tests(mpi),
            deadlock::tests(mpi),
            standstill::tests(mpi),
            exact::tests(mpi),
            flight::tests(mpi),
            hang::tests(mpi),
            hang_causes::tests(mpi),
            jobs::tests(mpi),
            joining::tests(mpi),
            kills::tests(mpi),
            attach_methods::tests(mpi),
            layers::tests(mpi),
            libraries::tests(mpi),
            namespaces::tests(mpi),
            nodes::tests(mpi),
            odd::tests(mpi),
            output::tests(mpi),
            phases::tests(mpi),
            random::tests(mpi),
            recent::tests(mpi),
            recording::tests(mpi),
            refusals::tests(mpi),
            reports::tests(mpi),
            rights::tests(mpi),
            run::tests(mpi),
            service::tests(mpi),
            threads::tests(mpi),
            timeline::tests(mpi),
            times::tests(mpi),
            tools::tests(mpi),
            trace::tests(mpi),
            waits::tests(mpi),
            view::tests(mpi),
            workers::tests(mpi),
        ]
    };
    let mut tests = refusals::general_tests();
    tests.extend(service::general_tests());
    tests.extend(silent_files::tests());
    tests.extend(kubernetes::tests());
    tests.extend(monitoring::tests());
    tests.extend(slurm::tests());
    tests.extend(ssh::tests());
    tests.extend(systemd::tests());
    tests.extend(Mpi::ALL.into_iter().flat_map(of_mpi).flatten());
    tests.extend(Mpi::EVERY.into_iter().flat_map(traffic::tests));
    tests.extend([Mpi::OpenMpi5, Mpi::Mpich5].into_iter().flat_map(hang_causes::tests));
    mpiprobe_tests::run(Arguments::from_args(), tests);
}

type Test = fn(Mpi) -> Result<(), Failed>;

/// A test of one MPI that attaches probes to a program in this language.
fn trial(mpi: Mpi, language: Language, name: &str, test: Test) -> Trial {
    trial_with(mpi, language, name, move || test(mpi))
}

fn trial_with(
    mpi: Mpi,
    language: Language,
    name: &str,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let needs = [Requirement::Bpf, Requirement::Mpi(mpi), Requirement::Language(mpi, language)];
    requirement::trial(format!("{}::{name}", mpi.id()), &needs, test)
}
