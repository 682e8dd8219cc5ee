//! Which of our environment a nested cargo must not see.

use std::ffi::{OsStr, OsString};

/// What cargo's user decides for every cargo: where crates come from, the network, and the job server.
///
/// The job server (`CARGO_MAKEFLAGS`) is inherited on purpose: the nested cargo then takes part in the outer one's limit
/// of jobs instead of doubling it, and it cannot starve, for a build script owns one job of its own.
const KEPT: [&str; 9] = [
    "CARGO_BUILD_JOBS",
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
];

/// What else the outer cargo, clippy, rustup or the user set for another compiler, target or profile.
const DROPPED: [&str; 5] = ["CARGO", "CLIPPY_", "RUSTC", "RUSTDOC", "RUSTFLAGS"];

/// Must `variable` be taken out of the environment of a nested cargo?
pub(crate) fn is_foreign(variable: &OsStr) -> bool {
    let Some(name) = variable.to_str() else { return false };
    let starts_with_any = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    name.starts_with("RUSTUP_TOOLCHAIN") || (starts_with_any(&DROPPED) && !starts_with_any(&KEPT))
}

/// rustc's flags for BPF, joined as `CARGO_ENCODED_RUSTFLAGS` wants it: paths may contain blanks.
pub(crate) fn encoded_rustflags(arch: &str, linker: &OsStr) -> OsString {
    const SEPARATOR: &str = "\x1f";
    let mut flags = OsString::new();
    // aya reads arguments of probed functions from the registers of this architecture.
    flags.push(format!("--cfg=bpf_target_arch=\"{arch}\""));
    // Debug information is what BTF is made of. v3 (kernel 5.1) has 32-bit arithmetic and jumps: shorter programs.
    for flag in ["-Cdebuginfo=2", "-Clink-arg=--btf", "-Ctarget-cpu=v3", "-Clinker="] {
        flags.push(SEPARATOR);
        flags.push(flag);
    }
    flags.push(linker);
    flags
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::{encoded_rustflags, is_foreign};

    #[test]
    fn what_the_outer_build_decided_is_foreign() {
        for name in [
            "CARGO",
            "CARGO_BUILD_BUILD_DIR",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "CARGO_BUILD_TARGET",
            "CARGO_CFG_TARGET_ARCH",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_FEATURE_LOG",
            "CARGO_INCREMENTAL",
            "CARGO_MANIFEST_DIR",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_TARGET_DIR",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            "CLIPPY_ARGS",
            "RUSTC",
            "RUSTC_BOOTSTRAP",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTDOCFLAGS",
            "RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
            "RUSTUP_TOOLCHAIN_SOURCE",
        ] {
            assert!(is_foreign(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn what_the_user_decided_for_every_cargo_stays() {
        for name in [
            "CARGO_HOME",
            "CARGO_HTTP_PROXY",
            "CARGO_MAKEFLAGS",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_CRATES_IO_PROTOCOL",
            "CARGO_TERM_COLOR",
            "HOME",
            "LD_LIBRARY_PATH",
            "PATH",
            "RUST_BACKTRACE",
            "RUSTUP_HOME",
            "SSL_CERT_FILE",
        ] {
            assert!(!is_foreign(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn flags_survive_blanks() {
        let flags = encoded_rustflags("x86_64", OsStr::new("/home/a b/bpf-linker"));
        let flags: Vec<&str> = flags.to_str().unwrap().split('\x1f').collect();
        assert_eq!(
            flags,
            [
                "--cfg=bpf_target_arch=\"x86_64\"",
                "-Cdebuginfo=2",
                "-Clink-arg=--btf",
                "-Ctarget-cpu=v3",
                "-Clinker=/home/a b/bpf-linker"
            ]
        );
    }
}
