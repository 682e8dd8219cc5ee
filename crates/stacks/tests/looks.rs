//! Looks at threads of this very process, and of many others that it starts.
#![expect(unsafe_code, reason = "system calls that threads wait in, with pointers to locals that outlive them")]
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    mem,
    os::fd::{AsRawFd as _, OwnedFd},
    process::{Child, Command, Stdio},
    ptr::null_mut,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use mpiprobe_discover::{ProcRoot, Process};
use mpiprobe_stacks::{
    Capture, Certainty, End, Limits, Look, Looker, Member, Report, Seen, State, Target, ThreadReport, ThreadStack,
    Tree, Verdict, Way,
};

/// `None`, with a word about it, where the kernel does not give its users BPF programs.
fn looker() -> Option<Looker> {
    match Capture::without_stopping(Limits::default()) {
        Ok(capture) => Some(Looker::new(capture)),
        Err(error) => {
            assert!(!rustix::process::geteuid().is_root(), "{error}");
            eprintln!("not tested: {error}");
            None
        }
    }
}

fn open(pid: u32) -> Process {
    Process::open(&ProcRoot::system().unwrap(), pid).unwrap()
}

fn look_at(looker: &mut Looker, process: &Process) -> Look {
    let executable = env::current_exe().unwrap();
    let target =
        Target { member: Member::Rank(0), process, executable: executable.to_str().unwrap(), element: &|_| None };
    looker.look(&[target]).unwrap()
}

fn of_thread(look: &Look, tid: u32) -> Option<&ThreadStack> {
    look.threads.iter().find(|thread| thread.tid == tid)
}

fn own_tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// What a system call has said.
fn answer(result: i64) -> Result<i64, i32> {
    if result < 0 { Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(result) }
}

/// Far more than anything takes, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_mins(5);

const WAIT_MS: i32 = 1500;
fn wait_time() -> libc::timespec {
    libc::timespec { tv_sec: 1, tv_nsec: 500_000_000 }
}

/// A pipe whose other end writes nothing until it is closed.
struct Pipe {
    ours: OwnedFd,
    other_end: Mutex<Option<OwnedFd>>,
}

/// Waits that end by their time or by the other side, each with its name; the latter is what they then say.
type Wait = (&'static str, fn(&Pipe) -> Result<i64, i32>, Result<i64, i32>);
const WAITS: [Wait; 8] = [
    // SAFETY: reads a time that outlives the call, and writes nothing.
    ("clock_nanosleep", |_| answer(unsafe { libc::nanosleep(&wait_time(), null_mut()) }.into()), Ok(0)),
    // SAFETY: no descriptors are given.
    ("poll", |_| answer(unsafe { libc::poll(null_mut(), 0, WAIT_MS) }.into()), Ok(0)),
    (
        "pselect6",
        |_| {
            let mut time = libc::timeval { tv_sec: 1, tv_usec: 500_000 };
            // SAFETY: no descriptors are given, and the time outlives the call.
            answer(unsafe { libc::select(0, null_mut(), null_mut(), null_mut(), &raw mut time) }.into())
        },
        Ok(0),
    ),
    (
        "read",
        |pipe| {
            let mut byte = 0_u8;
            // SAFETY: one byte is read into one, of a descriptor that is open.
            answer(unsafe { libc::read(pipe.ours.as_raw_fd(), (&raw mut byte).cast(), 1) } as i64)
        },
        // The other end is closed.
        Ok(0),
    ),
    (
        "futex",
        |_| {
            let word = AtomicU32::new(0);
            let (wait, time) = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, wait_time());
            // SAFETY: word and time outlive the call.
            answer(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, 0, &raw const time) })
        },
        Err(libc::ETIMEDOUT),
    ),
    (
        "futex",
        |_| {
            // SAFETY: both are plain data, for which zeroes are valid.
            let (mut now, mut semaphore): (libc::timespec, libc::sem_t) = unsafe { (mem::zeroed(), mem::zeroed()) };
            // SAFETY: semaphore and time are this thread's own, and outlive the calls.
            unsafe {
                libc::sem_init(&raw mut semaphore, 0, 0);
                libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now);
                now.tv_sec += 2;
                answer(libc::sem_timedwait(&raw mut semaphore, &raw const now).into())
            }
        },
        Err(libc::ETIMEDOUT),
    ),
    (
        "epoll_wait",
        // SAFETY: one event is asked for, and there is room for one; the descriptor is this thread's own.
        |_| unsafe {
            let poll = libc::epoll_create1(0);
            let mut event: libc::epoll_event = mem::zeroed();
            let result = answer(libc::epoll_wait(poll, &raw mut event, 1, WAIT_MS).into());
            libc::close(poll);
            result
        },
        Ok(0),
    ),
    (
        "recvfrom",
        // SAFETY: what is written has the sizes given and outlives the calls; both descriptors are this thread's own.
        |_| unsafe {
            let mut pair = [0; 2];
            libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr());
            let time = libc::timeval { tv_sec: 1, tv_usec: 500_000 };
            let size = u32::try_from(size_of::<libc::timeval>()).unwrap();
            libc::setsockopt(pair[0], libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const time).cast(), size);
            let mut byte = 0_u8;
            let result = answer(libc::recv(pair[0], (&raw mut byte).cast(), 1, 0) as i64);
            libc::close(pair[0]);
            libc::close(pair[1]);
            result
        },
        Err(libc::EAGAIN),
    ),
];

/// Each of them ends as if nobody had looked: a debugger, or a signal, makes the last two say EINTR.
/// Invariant NOBODY-STOPS.
#[test]
fn waiting_threads_do_not_notice_that_they_are_looked_at() {
    let Some(mut looker) = looker() else { return };
    let process = open(std::process::id());
    let (told, tids) = channel();
    let (ours, other_end) = rustix::pipe::pipe().unwrap();
    let pipe = Arc::new(Pipe { ours, other_end: Mutex::new(Some(other_end)) });
    let threads: Vec<_> = WAITS
        .into_iter()
        .map(|(name, wait, expected)| {
            let (told, pipe): (Sender<_>, _) = (told.clone(), Arc::clone(&pipe));
            thread::spawn(move || {
                let seen = Arc::new(AtomicBool::new(false));
                told.send((own_tid(), name, Arc::clone(&seen))).unwrap();
                // It waits once more if it was not looked at meanwhile, as on a machine that has much else to do.
                loop {
                    assert_eq!(wait(&pipe), expected, "{name}");
                    if seen.load(Ordering::Relaxed) {
                        break;
                    }
                }
            })
        })
        .collect();
    let waiting: Vec<_> = tids.iter().take(WAITS.len()).collect();
    let started = Instant::now();
    // Until all have been seen in their calls, and then until they have ended.
    while !threads.iter().all(thread::JoinHandle::is_finished) {
        assert!(started.elapsed() < PATIENCE, "not all have been seen in their calls: {waiting:?}");
        let look = look_at(&mut looker, &process);
        for (tid, name, seen) in &waiting {
            let Some(thread) = of_thread(&look, *tid) else { continue };
            // It may be on its way into the call, or out of it.
            let is_inside = thread.system_call.as_ref().and_then(|call| call.name) == Some(name);
            if is_inside && thread.state == State::Sleeping {
                assert_eq!((thread.way, thread.certainty), (Way::Copied, Certainty::Exact));
                assert_eq!(thread.end, End::Beginning, "{thread:?}");
                seen.store(true, Ordering::Relaxed);
                if *name == "read" {
                    pipe.other_end.lock().unwrap().take();
                }
            }
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

static TURNS: AtomicU64 = AtomicU64::new(0);
#[inline(never)]
fn goes_round(until: &AtomicBool) {
    while !until.load(Ordering::Relaxed) {
        TURNS.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn threads_on_a_processor_are_seen_where_they_are() {
    let Some(mut looker) = looker() else { return };
    let process = open(std::process::id());
    let until = Arc::new(AtomicBool::new(false));
    let (told, tids) = channel();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (until, told) = (Arc::clone(&until), told.clone());
            thread::spawn(move || {
                told.send(own_tid()).unwrap();
                goes_round(&until);
            })
        })
        .collect();
    let tids: Vec<u32> = tids.iter().take(2).collect();
    let started = Instant::now();
    let (mut ways, mut complete) = (BTreeSet::new(), 0);
    // One of them is on another processor than this thread sooner or later.
    while started.elapsed() < PATIENCE && (complete < 50 || !ways.contains(&Way::Sampled)) {
        let look = look_at(&mut looker, &process);
        for tid in &tids {
            let thread = of_thread(&look, *tid).unwrap();
            let is_there = thread.frames.iter().any(|frame| frame.function.ends_with("goes_round"));
            if is_there && thread.certainty == Certainty::Exact {
                assert_eq!(thread.end, End::Beginning, "{thread:?}");
                ways.insert(thread.way);
                complete += 1;
            }
        }
    }
    until.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(complete >= 50 && ways.contains(&Way::Sampled), "{complete} {ways:?}");
}

#[inline(never)]
fn frame_after_frame(depth: u32, told: &Sender<u32>, until: &std::sync::mpsc::Receiver<()>) -> u32 {
    // More than what is copied with the registers.
    let large = std::hint::black_box([depth; 4096]);
    if depth == 0 {
        told.send(own_tid()).unwrap();
        let _ = until.recv();
        return large[7];
    }
    std::hint::black_box(frame_after_frame(depth - 1, told, until) + large[9])
}

#[test]
fn stacks_that_are_larger_than_the_copy_are_followed_to_their_beginning() {
    let Some(mut looker) = looker() else { return };
    let process = open(std::process::id());
    let ((told, tids), (release, until)) = (channel(), channel());
    let thread = thread::spawn(move || frame_after_frame(20, &told, &until));
    let tid = tids.recv().unwrap();
    let is_waiting = |look: &Look| of_thread(look, tid).is_some_and(|thread| thread.state == State::Sleeping);
    let look = std::iter::repeat_with(|| look_at(&mut looker, &process)).find(is_waiting).unwrap();
    let found = of_thread(&look, tid).unwrap();
    let frames = found.frames.iter().filter(|frame| frame.function.ends_with("frame_after_frame")).count();
    assert_eq!((frames, found.end, found.read_later), (21, End::Beginning, true), "{found:?}");
    release.send(()).unwrap();
    thread.join().unwrap();
}

/// What the children of the next test are, this test in another process: four threads that wait until the parent goes.
#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    for _ in 0..3 {
        thread::spawn(|| thread::sleep(Duration::from_mins(10)));
    }
    println!("\nready");
    let _ = std::io::stdin().read(&mut [0]);
}

const CHILD: &str = "MPIPROBE_STACKS_CHILD";
const CHILDREN: u32 = 128;

struct Children(Vec<Child>);

impl Children {
    fn start(count: u32) -> Self {
        let child = |_| {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        let mut children: Vec<Child> = (0..count).map(child).collect();
        for child in &mut children {
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
        }
        Self(children)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// As soon as all threads wait: at first they are on their way to where they do.
fn settled(looker: &mut Looker, targets: &[Target<'_>]) -> Look {
    let all_wait = |look: &Look| look.threads.iter().all(|thread| thread.state == State::Sleeping);
    std::iter::repeat_with(|| looker.look(targets).unwrap()).find(all_wait).unwrap()
}

/// How long it takes is measured by `cargo xtask bench hang`.
#[test]
fn many_processes_are_looked_at_and_merged() {
    let Some(mut looker) = looker() else { return };
    let children = Children::start(CHILDREN);
    let processes: Vec<Process> = children.0.iter().map(|child| open(child.id())).collect();
    let executable = env::current_exe().unwrap();
    let executable = executable.to_str().unwrap();
    let target = |(rank, process)| Target { member: Member::Rank(rank), process, executable, element: &|_| None };
    let targets: Vec<Target<'_>> = (0..).zip(&processes).map(target).collect();
    settled(&mut looker, &targets);
    let look = looker.look(&targets).unwrap();
    let mut tree = Tree::default();
    for thread in &look.threads {
        tree.add(thread.member, thread.frames.iter().cloned(), None);
    }
    tree.sort();
    // The test harness has a thread of its own in each.
    assert!(look.threads.len() >= 4 * CHILDREN as usize, "{}", look.threads.len());
    assert!(look.threads.iter().all(|thread| thread.certainty == Certainty::Exact && thread.end == End::Beginning));
    assert!(tree.text().contains(&format!("[0-{}: {} threads]", CHILDREN - 1, 3 * CHILDREN)), "{}", tree.text());
}

#[test]
fn what_waits_has_not_gone_on_and_what_has_ended_is_said() {
    let Some(mut looker) = looker() else { return };
    let mut children = Children::start(2);
    let processes: Vec<Process> = children.0.iter().map(|child| open(child.id())).collect();
    let target = |(rank, process)| Target { member: Member::Rank(rank), process, executable: "", element: &|_| None };
    let targets = || (0..).zip(&processes).map(target).collect::<Vec<_>>();
    // They may yet be on their way to where they wait.
    let mut looks = Vec::new();
    let has_settled = |looks: &[Look]| {
        let gone_on = |thread: &ThreadReport| thread.gone_on != Some(false);
        looks.len() > 1 && !Seen::of(looks, false, false).threads.iter().any(gone_on)
    };
    while !has_settled(&looks) {
        looks.drain(..looks.len().saturating_sub(1));
        looks.push(looker.look(&targets()).unwrap());
    }
    looks.truncate(1);
    children.0[1].kill().unwrap();
    children.0[1].wait().unwrap();
    looks.push(looker.look(&targets()).unwrap());
    let report = Report::of(vec![Seen::of(&looks, false, false)], None);
    assert_eq!(report.verdict, Verdict::SomeAreOutside);
    assert_eq!(report.threads[0].gone_on, Some(false), "{report:?}");
    assert!(report.text().contains("Rank 1 ended"), "{}", report.text());
}

/// Waits for a byte in a function of one library, closes that, and waits for one in another.
const WAITS_IN_LIBRARIES: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **libraries) {
    for (int number = 1; number < count; number++) {
        void *library = dlopen(libraries[number], RTLD_NOW);
        int (*wait)(void) = (int (*)(void)) dlsym(library, "wait_for_byte");
        printf("%p\n", (void *) wait);
        fflush(stdout);
        if (wait() != 1) return 1;
        dlclose(library);
    }
    return 0;
}
"#;
const WAITS_FOR_BYTE: &str = r"
#include <unistd.h>
int wait_for_byte(void) {
    volatile char room[ROOM];
    int bytes = read(0, (char *) room, 1);
    return bytes;
}
";

/// As MPI's libraries do with their components while they initialise.
#[test]
fn libraries_may_take_the_place_of_others_between_looks() {
    let Some(mut looker) = looker() else { return };
    let folder = tempfile::tempdir().unwrap();
    let compiled = |name: &str, source: &str, options: &[&str]| {
        let (path, text) = (folder.path().join(name), folder.path().join("source.c"));
        std::fs::write(&text, source).unwrap();
        let status = Command::new("cc").args(["-O2", "-o"]).arg(&path).arg(&text).args(options).status().unwrap();
        assert!(status.success());
        path
    };
    // Both ask for the same place; what their functions have on the stack is not of the same size.
    let library =
        |name, room| compiled(name, WAITS_FOR_BYTE, &["-shared", "-fPIC", "-Wl,-Ttext-segment=0x510000000000", room]);
    let libraries = [library("one.so", "-DROOM=64"), library("two.so", "-DROOM=8000")];
    let program = compiled("waits", WAITS_IN_LIBRARIES, &["-ldl"]);
    let mut child = Command::new(program).args(libraries).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let process = open(child.id());
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut places = BTreeSet::new();
    for _ in 0..2 {
        places.insert(from.next().unwrap().unwrap());
        let until = Instant::now() + PATIENCE;
        let thread = loop {
            let look = look_at(&mut looker, &process);
            let reads = |thread: &&ThreadStack| {
                thread.system_call.as_ref().is_some_and(|call| call.name == Some("read"))
                    && thread.state == State::Sleeping
            };
            if let Some(thread) = of_thread(&look, child.id()).filter(reads) {
                break thread.clone();
            }
            assert!(Instant::now() < until, "{look:?}");
        };
        let functions: Vec<&str> = thread.frames.iter().map(|frame| frame.function.as_str()).collect();
        assert!(functions.contains(&"wait_for_byte") && functions.contains(&"main"), "{thread:?}");
        assert_eq!(thread.end, End::Beginning, "{thread:?}");
        to.write_all(b"x").unwrap();
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(places.len(), 1, "the second library is elsewhere: {places:?}");
}

/// The way for those who may not use BPF.
#[test]
fn other_processes_are_looked_at_by_stopping_them_too() {
    let children = Children::start(2);
    let processes: Vec<Process> = children.0.iter().map(|child| open(child.id())).collect();
    let executable = env::current_exe().unwrap();
    let executable = executable.to_str().unwrap();
    let target = |(rank, process)| Target { member: Member::Rank(rank), process, executable, element: &|_| None };
    let targets: Vec<_> = (0..).zip(&processes).map(target).collect();
    let mut looker = Looker::new(Capture::by_stopping(Limits::default()));
    let look = settled(&mut looker, &targets);
    assert!(look.refused.is_empty(), "{:?}", look.refused);
    assert!(look.threads.len() >= 8, "{look:?}");
    for thread in &look.threads {
        assert_eq!((thread.way, thread.certainty, thread.end), (Way::Stopped, Certainty::Exact, End::Beginning));
        let state = std::fs::read_to_string(format!("/proc/{}/task/{}/stat", thread.pid, thread.tid)).unwrap();
        assert!(!state.contains(") t "), "still stopped: {state}");
    }
    assert!(looker.stops());
}

/// Stops the threads of a process over and over, this test in another process.
#[test]
fn stopper() {
    let Some(pid) = env::var_os(STOPPER) else { return };
    let process = open(pid.to_str().unwrap().parse().unwrap());
    let mut looker = Looker::new(Capture::by_stopping(Limits::default()));
    loop {
        look_at(&mut looker, &process);
    }
}

const STOPPER: &str = "MPIPROBE_STACKS_STOPPER";

#[test]
fn who_was_stopped_goes_on_when_mpiprobe_is_killed() {
    let children = Children::start(1);
    let pid = children.0[0].id();
    let is_stopped = || {
        let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        tasks.flatten().map(stat).any(|stat| stat.contains(") t "))
    };
    for _ in 0..10 {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "stopper", "--test-threads=1"]).env(STOPPER, pid.to_string());
        let mut stopper = command.stdout(Stdio::null()).spawn().unwrap();
        while !is_stopped() {
            assert!(stopper.try_wait().unwrap().is_none(), "the stopper has ended");
        }
        stopper.kill().unwrap();
        stopper.wait().unwrap();
        assert!(!is_stopped());
    }
}
