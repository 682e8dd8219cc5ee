//! Whether return probes can do harm: they replace the return address on the target's stack while a call runs.

use serde_json::json;

use crate::{
    discover::{
        Process,
        mappings::{MappedFile, Mappings},
        process::SMALL_FILE,
        status::Seccomp,
    },
    doctor::{Check, KernelRelease},
};

pub(super) fn examine(process: &Process, mappings: &Mappings, release: &KernelRelease) -> Vec<Check> {
    let mode = process.status().ok().and_then(|status| status.seccomp);
    let features = process.read("status", SMALL_FILE).map(|content| content.bytes).unwrap_or_default();
    let paths: Vec<String> = mappings.files.iter().map(MappedFile::display_path).collect();
    let mut checks = vec![seccomp(mode, release)];
    checks.extend(shadow_stack(&String::from_utf8_lossy(&features), release));
    checks.extend(exceptions(&paths));
    checks
}

/// This cannot be tried without risking a process: the kernel's release decides, as a warning.
fn seccomp(mode: Option<Seccomp>, release: &KernelRelease) -> Check {
    let check = match mode {
        Some(Seccomp::Strict | Seccomp::Filter) if release.may_filter_return_probes() => Check::limited(
            "seccomp",
            format!("it runs under seccomp, and Linux {release} may kill such a process at a return probe"),
            "update the kernel (6.12.14, 6.13.3, 6.14 or later), or start the job without the filter \
             (containers: --security-opt seccomp=unconfined), unless your distribution has the fix (cf6cb56ef244)",
        ),
        Some(Seccomp::Strict | Seccomp::Filter) => {
            Check::ok("seccomp", "it runs under seccomp, which does not affect probes on this kernel")
        }
        Some(Seccomp::Disabled) | None => Check::ok("seccomp", "it runs without seccomp"),
    };
    check.with(json!({ "mode": mode }))
}

/// `None` for the many processes without one. Written as `x86_Thread_features:\tshstk wrss` (arch/x86/kernel/cpu/proc.c).
fn shadow_stack(status: &str, release: &KernelRelease) -> Option<Check> {
    let features = status.lines().find_map(|line| line.strip_prefix("x86_Thread_features:"))?;
    features.split_ascii_whitespace().find(|feature| *feature == "shstk")?;
    Some(if release.may_break_shadow_stacks() {
        Check::limited(
            "shadow-stack",
            format!("it has a shadow stack, and Linux {release} may kill such a process at a return probe"),
            "update the kernel (6.11 or later), or start the job with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off",
        )
    } else {
        Check::ok("shadow-stack", "it has one, which this kernel keeps in step with return probes")
    })
}

/// `None` for processes without C++. A program with the C++ library linked in is not recognised.
fn exceptions(paths: &[String]) -> Option<Check> {
    let is_cpp = |path: &&String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.starts_with("libstdc++.so") || name.starts_with("libc++.so")
    };
    let library = paths.iter().find(is_cpp)?;
    let check = Check::limited(
        "cpp-exceptions",
        "it uses C++",
        "nothing, unless the program throws from an error handler, reduction operation or attribute callback: then do not \
         observe it, or have it handle the error without throwing",
    );
    Some(
        check
            .because("a C++ exception thrown through an MPI function that is being observed aborts the program")
            .with(json!({ "library": library })),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn seccomp_matters_on_kernels_without_the_fix() {
        let verdict = |mode, release| seccomp(mode, &KernelRelease::parse(release)).verdict;
        assert_eq!(verdict(Some(Seccomp::Filter), "6.11.5"), Verdict::Limited);
        assert_eq!(verdict(Some(Seccomp::Filter), "6.18.1"), Verdict::Ok);
        assert_eq!(verdict(Some(Seccomp::Disabled), "6.11.5"), Verdict::Ok);
        assert_eq!(verdict(None, "6.11.5"), Verdict::Ok);
    }

    #[test]
    fn shadow_stacks_matter_on_old_kernels() {
        let verdict = |status, release| shadow_stack(status, &KernelRelease::parse(release)).map(|check| check.verdict);
        let status = "Name:\tx\nx86_Thread_features:\tshstk wrss\nx86_Thread_features_locked:\t\n";
        assert_eq!(verdict(status, "6.8.0"), Some(Verdict::Limited));
        assert_eq!(verdict(status, "6.12.1"), Some(Verdict::Ok));
        assert_eq!(verdict("x86_Thread_features:\t\nx86_Thread_features_locked:\tshstk\n", "6.8.0"), None);
        assert_eq!(verdict("", "6.8.0"), None);
    }

    #[test]
    fn cpp_is_recognised_by_its_library() {
        let verdict = |paths: &[&str]| {
            exceptions(&paths.iter().map(ToString::to_string).collect::<Vec<_>>()).map(|check| check.verdict)
        };
        assert_eq!(verdict(&["/bin/a", "/usr/lib/libstdc++.so.6.0.30"]), Some(Verdict::Limited));
        assert_eq!(verdict(&["/opt/libc++.so.1"]), Some(Verdict::Limited));
        assert_eq!(verdict(&["/bin/a", "/usr/lib/libc.so.6", "/libstdc++.so/x"]), None);
    }
}
