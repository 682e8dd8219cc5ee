//! What the worker may ask the kernel for: nothing that opens a file, makes a connection, executes a program, or concerns another process.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

/// Whatever they are given. Threads, memory, time, and what is open already.
const PERMITTED: &[libc::c_long] = &[
    libc::SYS_accept4,
    // How well the clock is synchronised: to set it takes a capability.
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_geteuid,
    libc::SYS_getuid,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_pidfd_open,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Of `bpf(2)`, by the tables that it is given: `BPF_MAP_LOOKUP_ELEM`, `UPDATE`, `DELETE`, `GET_NEXT_KEY`, `BPF_OBJ_GET_INFO_BY_FD`,
/// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`, `BPF_MAP_LOOKUP_BATCH` (include/uapi/linux/bpf.h, `enum bpf_cmd`).
const OF_TABLES: [u64; 7] = [1, 2, 3, 4, 15, 21, 24];

/// `CLONE_THREAD`: what is made is a thread of this process.
const OF_THIS_PROCESS: u64 = 0x0001_0000;
/// `PR_SET_NAME`, and what a library names its memory by (`PR_SET_VMA`).
const NAMES: [u64; 2] = [15, 0x5356_4d41];

/// `AF_UNIX`: what a runtime makes for itself.
const LOCAL: u64 = 1;

/// Its arguments are in memory, which a filter cannot see. It is as if the kernel had none: threads are made by the older call.
fn newer_clone() -> Result<BpfProgram, BackendError> {
    let rules = [(libc::SYS_clone3, Vec::new())].into();
    let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, missing, architecture()?)?.try_into()
}

fn architecture() -> Result<TargetArch, BackendError> {
    TargetArch::try_from(std::env::consts::ARCH)
}

fn permitted() -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = PERMITTED.iter().map(|&call| (call, Vec::new())).collect();
    let first =
        |operator, value| SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, operator, value)?]);
    let one_of =
        |values: &[u64]| values.iter().map(|&value| first(SeccompCmpOp::Eq, value)).collect::<Result<Vec<_>, _>>();
    rules.insert(libc::SYS_bpf, one_of(&OF_TABLES)?);
    rules.insert(libc::SYS_prctl, one_of(&NAMES)?);
    rules.insert(libc::SYS_clone, vec![first(SeccompCmpOp::MaskedEq(OF_THIS_PROCESS), OF_THIS_PROCESS)?]);
    // Ending itself, which `abort` does so.
    rules.insert(libc::SYS_tgkill, one_of(&[u64::from(std::process::id())])?);
    // Its own limits, which are named by 0.
    rules.insert(libc::SYS_prlimit64, one_of(&[0])?);
    rules.insert(libc::SYS_socketpair, vec![first(SeccompCmpOp::Eq, LOCAL)?]);
    // The other filter's matter.
    rules.insert(libc::SYS_clone3, Vec::new());
    // Refused, not punished: a library that finds out what there is goes on without.
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    SeccompFilter::new(rules, refused, SeccompAction::Allow, architecture()?)?.try_into()
}

/// From now on, for all threads of this process and for ever.
pub(super) fn confine() -> io::Result<()> {
    for program in [newer_clone(), permitted()] {
        apply_filter_all_threads(&program.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    Ok(())
}
