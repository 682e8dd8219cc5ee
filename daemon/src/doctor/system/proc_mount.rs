//! Whether `/proc` shows other users' processes.

use mpiprobe_model::Check;

use crate::doctor::{
    read::read_text,
    rights::{Capability, Rights},
};

pub(super) fn check(rights: &Rights) -> Check {
    let mounts = read_text("/proc/self/mountinfo").unwrap_or_default();
    judge(hidepid(&mounts), rights)
}

/// Processes whose directories the kernel hides from some (proc(5), `hidepid=`; fs/proc/base.c, has_pid_permissions).
fn judge(hidepid: Option<&str>, rights: &Rights) -> Check {
    match hidepid {
        None | Some("0" | "off") => Check::ok("proc-hidepid", "/proc shows the processes of all users"),
        Some(mode) if rights.has(Capability::SysPtrace) => {
            Check::ok("proc-hidepid", format!("hidepid={mode}, which does not bind holders of CAP_SYS_PTRACE"))
        }
        Some(mode) => Check::limited(
            "proc-hidepid",
            format!("/proc is mounted with hidepid={mode}"),
            "run mpiprobe as root, or as a member of the group named by that mount's gid= option",
        )
        .because("processes of other users are not found"),
    }
}

/// The option of the proc file system at `/proc`, from mountinfo (proc_pid_mountinfo(5)): of several mounts there the last is on
/// top. Fields: id, parent, device, root, mount point, options, optional fields, `-`, type, source, super block's options.
fn hidepid(mountinfo: &str) -> Option<&str> {
    let line = mountinfo.lines().rfind(|line| line.split(' ').nth(4) == Some("/proc"))?;
    let (_, file_system) = line.split_once(" - ")?;
    let mut fields = file_system.split(' ');
    if fields.next()? != "proc" {
        return None;
    }
    fields.nth(1)?.split(',').find_map(|option| option.strip_prefix("hidepid="))
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;
    use crate::doctor::rights::tests::rights;

    const OPEN: &str = "22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw";
    const HIDDEN: &str =
        "22 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw,gid=27,hidepid=invisible";

    #[test]
    fn the_option_is_found_among_others() {
        assert_eq!(hidepid(HIDDEN), Some("invisible"));
        assert_eq!(hidepid("1 2 0:3 / /proc rw - proc none rw,hidepid=2"), Some("2"));
        assert_eq!(hidepid(OPEN), None);
    }

    #[test]
    fn only_the_topmost_proc_at_proc_counts() {
        assert_eq!(hidepid(&format!("{HIDDEN}\n{OPEN}")), None);
        assert_eq!(hidepid(&format!("{OPEN}\n{HIDDEN}")), Some("invisible"));
        assert_eq!(hidepid(&HIDDEN.replace(" /proc ", " /jail/proc ")), None);
        assert_eq!(hidepid(&HIDDEN.replace("- proc", "- tmpfs")), None);
        assert_eq!(hidepid("nonsense\n\n22 28 0:21 / /proc rw"), None);
    }

    #[test]
    fn it_binds_those_who_may_not_trace_all() {
        assert_eq!(judge(Some("2"), &rights(0)).verdict, Verdict::Limited);
        assert_eq!(judge(Some("2"), &rights(1 << 19)).verdict, Verdict::Ok);
        assert_eq!(judge(Some("off"), &rights(0)).verdict, Verdict::Ok);
        assert_eq!(judge(None, &rights(0)).verdict, Verdict::Ok);
    }
}
