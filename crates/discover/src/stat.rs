//! `/proc/PID/stat` (proc_pid_stat(5); kernel: fs/proc/array.c, do_task_stat).

/// The kernel's flag for its own threads, `PF_KTHREAD` (include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The kernel's flag for a task that is on its way out, `PF_EXITING`: it is set before the task gives its memory back.
const EXITING: u64 = 0x4;

/// What mpiprobe needs of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Command name, at most 15 bytes (64 for kernel threads), as the process chose it: any bytes.
    pub comm: Vec<u8>,
    /// `R`unning, `S`leeping, `D`isk, `T`/`t` stopped, `Z`ombie, `X` dead, `I`dle.
    pub state: char,
    /// The parent; 0 for init and for kernel threads' ancestor.
    pub parent: u32,
    /// Whether this is one of the kernel's own threads.
    pub kernel_thread: bool,
    /// Whether its first thread is on its way out. The memory goes first, and with that what `environ`, `cmdline`, `maps` and `exe` say;
    /// it may take long until the end is told.
    pub exiting: bool,
    /// Start time in clock ticks since boot: with the pid, an identity until the next boot.
    pub start_ticks: u64,
    /// Where its stack begins, which another program that it executes moves; 0: it may not be known.
    pub stack_start: u64,
    /// With what it has ended, as wait(2) gives it; 0 as well if it has not, or that may not be known.
    pub exit_status: i32,
}

impl Stat {
    /// Parses the file's content; `None` if it does not have the form the kernel gives it.
    pub fn parse(content: &[u8]) -> Option<Self> {
        // The name may itself hold spaces and parentheses: it ends at the *last* one.
        let open = memchr::memchr(b'(', content)?;
        let close = memchr::memrchr(b')', content)?;
        let comm = content.get(open.checked_add(1)?..close)?.to_vec();
        let rest = std::str::from_utf8(content.get(close.checked_add(1)?..)?).ok()?;
        // Numbered as in the manual page: the state, first after the name, is field 3.
        let mut fields = rest.split_ascii_whitespace();
        let mut state = fields.next()?.chars();
        let (Some(state), None) = (state.next(), state.next()) else { return None };
        let parent = fields.next()?.parse().ok()?; // 4
        let flags: u64 = fields.nth(4)?.parse().ok()?; // 9
        let start_ticks = fields.nth(12)?.parse().ok()?; // 22
        let stack_start = fields.nth(5).and_then(|field| field.parse().ok()).unwrap_or(0); // 28
        let exit_status = fields.nth(23).and_then(|field| field.parse().ok()).unwrap_or(0); // 52
        let [kernel_thread, exiting] = [KERNEL_THREAD, EXITING].map(|flag| flags & flag != 0);
        Some(Self { comm, state, parent, kernel_thread, exiting, start_ticks, stack_start, exit_status })
    }

    /// Whether the process has ended, or is about to and has no memory any more.
    pub fn has_ended(&self) -> bool {
        self.exiting || matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "4711 (a) R (b) S 4242 4711 4711 0 -1 4194304 178 0 0 0 0 0 0 0 20 0 1 0 987654 5808128 420\n";

    #[test]
    fn the_name_may_hold_parentheses() {
        let stat = Stat::parse(LINE.as_bytes()).unwrap();
        assert_eq!(stat.comm, b"a) R (b");
        assert_eq!((stat.state, stat.parent, stat.start_ticks), ('S', 4242, 987_654));
        assert!(!stat.kernel_thread);
        assert!(!stat.has_ended());
    }

    #[test]
    fn kernel_threads_and_zombies_are_told() {
        let line = "2 (kthreadd) Z 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n";
        let stat = Stat::parse(line.as_bytes()).unwrap();
        assert!(stat.kernel_thread);
        assert!(stat.has_ended());
    }

    #[test]
    fn who_is_on_the_way_out_has_ended() {
        let line = "7 (ring) R 4 4 4 0 -1 4194308 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n";
        assert!(Stat::parse(line.as_bytes()).unwrap().has_ended());
    }

    #[test]
    fn short_or_reversed_input_is_refused() {
        assert_eq!(Stat::parse(b""), None);
        assert_eq!(Stat::parse(b")1("), None);
        assert_eq!(Stat::parse(b"1 (x) S 1 2 3"), None);
        assert_eq!(Stat::parse(b"1 (x) SS 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0"), None);
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let _ = Stat::parse(&bytes);
        }

        #[test]
        fn any_name_comes_back(comm in proptest::collection::vec(any::<u8>(), 0..64), start: u64, parent: u32) {
            let mut line = b"1 (".to_vec();
            line.extend(&comm);
            line.extend(format!(") S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n").bytes());
            let stat = Stat::parse(&line).unwrap();
            prop_assert_eq!(stat.comm, comm);
            prop_assert_eq!((stat.parent, stat.start_ticks), (parent, start));
        }
    }
}
