//! Each right that is needed, one by one.

use mpiprobe_model::{Check, Verdict};

use crate::doctor::rights::{
    Capability::{self, Bpf, CheckpointRestore, Perfmon, SysAdmin, SysPtrace},
    Rights,
};

/// A capability and what it is for.
struct Need {
    capability: Capability,
    check: &'static str,
    name: &'static str,
    purpose: &'static str,
    /// Without it.
    verdict: Verdict,
}

const NEEDS: [Need; 5] = [
    Need {
        capability: Bpf,
        check: "cap-bpf",
        name: "CAP_BPF",
        purpose: "to make BPF tables and load programs",
        verdict: Verdict::Failed,
    },
    Need {
        capability: Perfmon,
        check: "cap-perfmon",
        name: "CAP_PERFMON",
        purpose: "to attach programs to functions of processes",
        verdict: Verdict::Failed,
    },
    Need {
        capability: SysPtrace,
        check: "cap-sys-ptrace",
        name: "CAP_SYS_PTRACE",
        purpose: "to look into processes of other users, and of one's own where Yama restricts tracing",
        verdict: Verdict::Limited,
    },
    Need {
        capability: SysAdmin,
        check: "cap-sys-admin",
        name: "CAP_SYS_ADMIN",
        purpose: "only to attach by perf events, where the kernel has nothing better",
        verdict: Verdict::Info,
    },
    Need {
        capability: CheckpointRestore,
        check: "cap-checkpoint-restore",
        name: "CAP_CHECKPOINT_RESTORE",
        purpose: "only to read libraries that were deleted or replaced while in use",
        verdict: Verdict::Info,
    },
];

pub(super) fn examine(rights: &Rights) -> Vec<Check> {
    let mut checks: Vec<Check> = NEEDS.iter().map(|need| check(need, rights)).collect();
    checks.push(user_namespace(rights));
    checks
}

fn check(need: &Need, rights: &Rights) -> Check {
    let Need { capability, check, name, purpose, verdict } = need;
    if rights.has(*capability) {
        return Check::ok(check, format!("{name} is held"));
    }
    let finding = format!("{name} is missing");
    match verdict {
        Verdict::Failed => Check::failed(check, finding, rights.how_to_grant()),
        Verdict::Limited => Check::limited(check, finding, rights.how_to_grant()),
        Verdict::Info | Verdict::Ok => Check::info(check, finding),
    }
    .because(format!("needed {purpose}"))
}

fn user_namespace(rights: &Rights) -> Check {
    if rights.in_user_namespace {
        Check::failed("user-namespace", "runs in a user namespace (a rootless container)", rights.how_to_grant())
            .because("the kernel grants BPF to capabilities of the initial user namespace only")
    } else {
        Check::ok("user-namespace", "the initial one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rights::tests::rights;

    fn verdicts(effective: u64) -> Vec<Verdict> {
        examine(&rights(effective)).iter().map(|check| check.verdict).collect()
    }

    #[test]
    fn nobody_is_told_each_capability_that_is_missing() {
        use Verdict::{Failed, Info, Limited, Ok};
        assert_eq!(verdicts(0), [Failed, Failed, Limited, Info, Info, Ok]);
        let missing: Vec<_> = examine(&rights(0)).into_iter().take(3).map(|check| check.finding).collect();
        assert_eq!(missing, ["CAP_BPF is missing", "CAP_PERFMON is missing", "CAP_SYS_PTRACE is missing"]);
    }

    #[test]
    fn the_three_documented_ones_are_enough() {
        use Verdict::{Info, Ok};
        assert_eq!(verdicts(1 << 39 | 1 << 38 | 1 << 19), [Ok, Ok, Ok, Info, Info, Ok]);
        assert_eq!(verdicts(u64::MAX), [Ok; 6]);
    }

    #[test]
    fn rights_in_a_user_namespace_are_none() {
        let inside = Rights { in_user_namespace: true, ..rights(u64::MAX) };
        assert_eq!(examine(&inside).last().map(|check| check.verdict), Some(Verdict::Failed));
    }
}
