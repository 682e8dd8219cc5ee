//! Where open calls were made from: found in the kernel's own structures when somebody asks, so that no call pays for it.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsFd as _, OwnedFd},
};

use mpiprobe_common::{EnvironmentFields, Namespace, OpenCalls};
use thiserror::Error;

use super::{
    AttachError, Tables,
    kernel::{
        bpf,
        btf::{self, Wanted},
    },
};

const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The kernel's types are 4 to 8 MB.
const MAX_TYPES_BYTES: u64 = 64 << 20;

/// Why call sites must be read at every call instead.
#[derive(Debug, Error)]
pub enum LocateError {
    #[error("cannot read the kernel's types in {KERNEL_TYPES}: {0}")]
    Types(#[source] io::Error),
    #[error("the kernel's types in {KERNEL_TYPES} do not tell where it keeps return addresses")]
    Unknown,
    #[error(
        "the kernel's types in {KERNEL_TYPES} do not tell where it keeps the numbers of processes in pid namespaces"
    )]
    NoNumbers,
    #[error("{0}")]
    Program(#[from] Box<AttachError>),
    #[error("cannot make an iterator over all threads: {0}")]
    Link(#[source] io::Error),
}

/// The pid namespace that this process runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PidNamespace {
    /// Its numbers are the kernel's own.
    Initial,
    /// As in a container.
    Own {
        inode: u32,
        /// As the kernel counts devices (include/linux/kdev_t.h).
        device: u32,
    },
}

impl PidNamespace {
    /// Where `/proc` does not tell, it is the initial one.
    pub fn own() -> Self {
        // include/linux/proc_ns.h: PROC_PID_INIT_INO.
        const INITIAL: u64 = 0xefff_fffc;
        match rustix::fs::stat("/proc/self/ns/pid") {
            Ok(found) if found.st_ino != INITIAL => {
                let (major, minor) = (rustix::fs::major(found.st_dev), rustix::fs::minor(found.st_dev));
                // Numbers of namespaces are 32 bits long (include/linux/ns_common.h).
                u32::try_from(found.st_ino)
                    .map_or(Self::Initial, |inode| Self::Own { inode, device: major << 20 | minor })
            }
            _ => Self::Initial,
        }
    }
}

/// What is read out of the kernel's types.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelTypes {
    pub(super) open_calls: OpenCalls,
    pub(super) environment: EnvironmentFields,
    /// Without the namespace itself. `None`: not known.
    numbers: Option<Namespace>,
    /// Id of the function that stands for the iterator over tasks.
    iterator: u32,
}

impl KernelTypes {
    pub(super) fn read() -> Result<Self, LocateError> {
        let file = File::open(KERNEL_TYPES).map_err(LocateError::Types)?;
        let mut bytes = Vec::new();
        file.take(MAX_TYPES_BYTES).read_to_end(&mut bytes).map_err(LocateError::Types)?;
        Self::parse(&bytes).ok_or(LocateError::Unknown)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let field = |structure, field| Wanted::Field { structure, field };
        let found = btf::find(
            bytes,
            [
                field("task_struct", "tgid"),
                field("task_struct", "pid"),
                field("task_struct", "utask"),
                field("uprobe_task", "return_instances"),
                field("return_instance", "stack"),
                field("return_instance", "orig_ret_vaddr"),
                field("return_instance", "next"),
                field("task_struct", "mm"),
                field("mm_struct", "env_start"),
                field("mm_struct", "env_end"),
                field("task_struct", "real_parent"),
                field("task_struct", "thread_pid"),
                field("task_struct", "group_leader"),
                field("pid", "level"),
                field("pid", "numbers"),
                Wanted::Function { name: "bpf_iter_task" },
            ],
        )?;
        let [
            Some(task_tgid),
            Some(task_pid),
            Some(task_utask),
            Some(utask_return_instances),
            Some(instance_stack),
            Some(instance_return_address),
            Some(instance_next),
            task_mm,
            env_start,
            env_end,
            real_parent,
            thread_pid,
            group_leader,
            level,
            numbers,
            Some(iterator),
        ] = found
        else {
            return None;
        };
        let open_calls = OpenCalls {
            task_tgid,
            task_pid,
            task_utask,
            utask_return_instances,
            instance_stack,
            instance_return_address,
            instance_next,
            reserved: 0,
        };
        let environment = match (task_mm, env_start, env_end, real_parent) {
            (Some(task_mm), Some(env_start), Some(env_end), Some(task_real_parent)) => {
                EnvironmentFields { task_mm, env_start, env_end, task_real_parent }
            }
            // It is read in /proc then.
            _ => EnvironmentFields::UNKNOWN,
        };
        let numbers = match (thread_pid, group_leader, level, numbers) {
            (Some(task_thread_pid), Some(task_group_leader), Some(pid_level), Some(pid_numbers)) => {
                Some(Namespace { task_thread_pid, task_group_leader, pid_level, pid_numbers, ..Namespace::INITIAL })
            }
            _ => None,
        };
        Some(Self { open_calls, environment, numbers, iterator })
    }

    /// The pid namespace that this process runs in, as the programs have to know it.
    pub(super) fn namespace(&self, own: PidNamespace) -> Result<Namespace, LocateError> {
        match own {
            PidNamespace::Initial => Ok(Namespace::INITIAL),
            PidNamespace::Own { inode, device } => {
                self.numbers.map(|numbers| Namespace { inode, device, ..numbers }).ok_or(LocateError::NoNumbers)
            }
        }
    }
}

/// Looks up the call sites of open calls.
#[derive(Debug)]
pub(super) struct Locator {
    link: OwnedFd,
}

impl Locator {
    pub(super) fn new(tables: &Tables, types: &KernelTypes) -> Result<Self, LocateError> {
        let program = tables.load_iterator("locate_open_calls", types.iterator).map_err(Box::new)?;
        Ok(Self { link: bpf::link_iterator(program.as_fd()).map_err(LocateError::Link)? })
    }

    /// Notes in the table of threads where each open call was made from.
    pub(super) fn run(&self) -> io::Result<()> {
        // Reading makes the kernel run the program for every thread; it writes nothing into the file itself.
        let mut run = File::from(bpf::start_iterator(self.link.as_fd())?);
        io::copy(&mut run, &mut io::sink()).map(|_| ())
    }
}
