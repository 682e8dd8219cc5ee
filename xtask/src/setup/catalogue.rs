//! Everything that can be required, with its reason.

use super::requirement::{Check, Purpose, Repository, Requirement};

/// A C compiler is not our wish but rustup's: without one not even this program could have been linked.
const ALWAYS: [Requirement; 5] = [
    Requirement {
        package: "gcc",
        reason: "C compiler: links Rust programs, compiles the MPI programs to be profiled",
        purpose: Purpose::Build,
        check: Check::Command("cc"),
        repository: Repository::Main,
    },
    Requirement {
        package: "libc6-dev",
        reason: "C library: links Rust programs, compiles the MPI programs to be profiled",
        purpose: Purpose::Build,
        check: Check::File("/usr/include/stdio.h"),
        repository: Repository::Main,
    },
    Requirement {
        package: "libllvm22",
        reason: "LLVM's library: bpf-linker is built against it",
        purpose: Purpose::Build,
        check: Check::Package(22, 1),
        repository: Repository::Security,
    },
    Requirement {
        package: "nodejs",
        reason: "Node.js: npm runs on it, and the tests of the HTML report",
        purpose: Purpose::Build,
        check: Check::Command("node"),
        repository: Repository::Main,
    },
    Requirement {
        package: "npm",
        reason: "npm: fetches the libraries of the HTML report",
        purpose: Purpose::Build,
        check: Check::Command("npm"),
        repository: Repository::Main,
    },
];

/// aya-ebpf 0.2 needs rustc 1.87; Debian 12 as released has 1.85, its security updates have newer ones.
const DEBIAN_COMPILER: [Requirement; 2] = [
    Requirement {
        package: "rustc-web",
        reason: "Rust compiler that has a core library for BPF",
        purpose: Purpose::Build,
        check: Check::Package(1, 87),
        repository: Repository::Security,
    },
    Requirement {
        package: "libstd-rust-web-dev-bpf",
        reason: "core library for BPF",
        purpose: Purpose::Build,
        check: Check::Package(1, 87),
        repository: Repository::Security,
    },
];

const MPI: [Requirement; 2] = [
    Requirement {
        package: "openmpi-bin",
        reason: "Open MPI: starts the jobs to be profiled",
        purpose: Purpose::Demo,
        check: Check::Command("mpirun.openmpi"),
        repository: Repository::Main,
    },
    Requirement {
        package: "libopenmpi-dev",
        reason: "Open MPI: compiles the programs to be profiled",
        purpose: Purpose::Demo,
        check: Check::Command("mpicc.openmpi"),
        repository: Repository::Main,
    },
];

const TESTS: [Requirement; 15] = [
    Requirement {
        package: "mpich",
        reason: "MPICH, the second MPI family: starts the jobs to be profiled",
        purpose: Purpose::Test,
        check: Check::Command("mpirun.mpich"),
        repository: Repository::Main,
    },
    Requirement {
        package: "libmpich-dev",
        reason: "MPICH: compiles the programs to be profiled",
        purpose: Purpose::Test,
        check: Check::Command("mpicc.mpich"),
        repository: Repository::Main,
    },
    Requirement {
        package: "gfortran",
        reason: "Fortran compiler: profiled programs with `use mpi` and `use mpi_f08`",
        purpose: Purpose::Test,
        check: Check::Command("gfortran"),
        repository: Repository::Main,
    },
    Requirement {
        package: "g++",
        reason: "C++ compiler: profiled programs that use the C++ bindings",
        purpose: Purpose::Test,
        check: Check::Command("g++"),
        repository: Repository::Main,
    },
    Requirement {
        package: "python3-mpi4py",
        reason: "MPI for Python: a profiled program that loads its MPI library late",
        purpose: Purpose::Test,
        check: Check::File("/usr/lib/python3/dist-packages/mpi4py"),
        repository: Repository::Main,
    },
    Requirement {
        package: "python3-venv",
        reason: "virtual environments: MPI for Python with MPICH, from PyPI",
        purpose: Purpose::Test,
        check: Check::Package(0, 0),
        repository: Repository::Main,
    },
    Requirement {
        package: "libcap2-bin",
        reason: "setcap: mpiprobe run by an ordinary user with file capabilities",
        purpose: Purpose::Test,
        check: Check::Package(0, 0),
        repository: Repository::Main,
    },
    Requirement {
        package: "binutils",
        reason: "strip, objcopy: programs and libraries with symbols taken away",
        purpose: Purpose::Test,
        check: Check::Command("objcopy"),
        repository: Repository::Main,
    },
    Requirement {
        package: "musl-tools",
        reason: "musl, another C library: programs of a job that have not the one that MPI has",
        purpose: Purpose::Test,
        check: Check::Command("musl-gcc"),
        repository: Repository::Main,
    },
    Requirement {
        package: "hpcc",
        reason: "HPC Challenge: an application that Debian has compiled, to be profiled as it is",
        purpose: Purpose::Test,
        check: Check::Command("hpcc"),
        repository: Repository::Main,
    },
    Requirement {
        package: "chromium",
        reason: "a browser, which the tests open the HTML report in",
        purpose: Purpose::Test,
        check: Check::Command("chromium"),
        repository: Repository::Main,
    },
    Requirement {
        package: "otf2-tools",
        reason: "otf2-print, which reads what traces are exported to",
        purpose: Purpose::Test,
        check: Check::Command("otf2-print"),
        repository: Repository::Main,
    },
    Requirement {
        package: "systemd",
        reason: "systemd, as the first process of a namespace: the node service under its unit",
        purpose: Purpose::Test,
        check: Check::File("/lib/systemd/systemd"),
        repository: Repository::Main,
    },
    Requirement {
        package: "python3-yaml",
        reason: "YAML for Python: reads the manifest for Kubernetes",
        purpose: Purpose::Test,
        check: Check::File("/usr/lib/python3/dist-packages/yaml"),
        repository: Repository::Main,
    },
    Requirement {
        package: "iproute2",
        reason: "ip: networks of nodes that are namespaces",
        purpose: Purpose::Test,
        check: Check::Command("ip"),
        repository: Repository::Main,
    },
];

const BENCH: [Requirement; 1] = [Requirement {
    package: "bpftrace",
    reason: "what mpiprobe's cost is compared with",
    purpose: Purpose::Bench,
    check: Check::Command("bpftrace"),
    repository: Repository::Main,
}];

const DIST: [Requirement; 3] = [
    Requirement {
        package: "rpm",
        reason: "rpm and rpmbuild: packages for systems other than Debian's",
        purpose: Purpose::Dist,
        check: Check::Command("rpmbuild"),
        repository: Repository::Main,
    },
    Requirement {
        package: "xz-utils",
        reason: "xz: packages are compressed by it",
        purpose: Purpose::Dist,
        check: Check::Command("xz"),
        repository: Repository::Main,
    },
    Requirement {
        package: "debootstrap",
        reason: "debootstrap: clean root file systems that packages are tried in",
        purpose: Purpose::Dist,
        check: Check::Command("debootstrap"),
        repository: Repository::Main,
    },
];

/// What is needed for `purposes`. Tests profile real jobs, so they need all that the demo needs.
pub(crate) fn required(purposes: &[Purpose], nightly: bool) -> Vec<&'static Requirement> {
    let wanted = |purpose: Purpose| {
        purposes.contains(&purpose) || (purpose == Purpose::Demo && purposes.contains(&Purpose::Test))
    };
    let compiler: &'static [Requirement] = if nightly { &[] } else { &DEBIAN_COMPILER };
    ALWAYS
        .iter()
        .chain(compiler)
        .chain(&MPI)
        .chain(&TESTS)
        .chain(&BENCH)
        .chain(&DIST)
        .filter(|requirement| wanted(requirement.purpose))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::required;
    use crate::setup::requirement::Purpose;

    fn packages(purposes: &[Purpose], nightly: bool) -> Vec<&'static str> {
        required(purposes, nightly).iter().map(|requirement| requirement.package).collect()
    }

    #[test]
    fn building_needs_a_compiler_for_bpf() {
        assert_eq!(
            packages(&[Purpose::Build], false),
            ["gcc", "libc6-dev", "libllvm22", "nodejs", "npm", "rustc-web", "libstd-rust-web-dev-bpf"]
        );
        assert_eq!(packages(&[Purpose::Build], true), ["gcc", "libc6-dev", "libllvm22", "nodejs", "npm"]);
    }

    #[test]
    fn tests_need_what_the_demo_needs() {
        assert_eq!(packages(&[Purpose::Demo], false), ["openmpi-bin", "libopenmpi-dev"]);
        let test = packages(&[Purpose::Test], false);
        assert!(test.starts_with(&["openmpi-bin", "libopenmpi-dev", "mpich"]));
        assert!(!test.contains(&"bpftrace"));
    }

    #[test]
    fn no_package_is_named_twice() {
        let all = packages(&[Purpose::Build, Purpose::Demo, Purpose::Test, Purpose::Bench, Purpose::Dist], false);
        let mut unique = all.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), all.len());
    }
}
