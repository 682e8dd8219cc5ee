//! Processes that ranks have forked and that have executed nothing since. Each has the same files mapped and the same environment, so that
//! it looks like the rank that it is a copy of, whether it computes on that one's behalf or will never call MPI.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    proc_root::ProcRoot,
    process::{Executable, Process},
    stat::Stat,
};

/// A process that uses MPI, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct ForkRelation {
    pub pid: u32,
    /// [`forked_from`] whom.
    pub forked_from: Option<u32>,
    /// It has called MPI, or is in a call.
    pub calls: bool,
}

/// Those of which nothing says that they are ranks. Of a rank and its copies that are those that do not call MPI, if any does;
/// otherwise all but the first one.
pub fn silent_copies(members: &[ForkRelation]) -> BTreeSet<u32> {
    let origins: BTreeMap<u32, Option<u32>> = members.iter().map(|member| (member.pid, member.forked_from)).collect();
    let mut families: BTreeMap<u32, Vec<&ForkRelation>> = BTreeMap::new();
    for member in members {
        families.entry(first(member.pid, &origins)).or_default().push(member);
    }
    let silent_of = |(first, family): (u32, Vec<&ForkRelation>)| {
        let any_calls = family.iter().any(|member| member.calls);
        let is_silent = move |member: &&ForkRelation| if any_calls { !member.calls } else { member.pid != first };
        family.into_iter().filter(is_silent).map(|member| member.pid).collect::<Vec<_>>()
    };
    families.into_iter().filter(|(_, family)| family.len() > 1).flat_map(silent_of).collect()
}

/// The first of a row of forks, of those that are there.
fn first(pid: u32, origins: &BTreeMap<u32, Option<u32>>) -> u32 {
    let mut first = pid;
    // What is wrong with numbers that have been used again, goes round no longer than that.
    for _ in 0..origins.len() {
        match origins.get(&first) {
            Some(&Some(parent)) if origins.contains_key(&parent) => first = parent,
            _ => break,
        }
    }
    first
}

/// Whom a process was forked from, if it has executed nothing since: its stack begins where that one's does, which is elsewhere
/// for each program that is executed.
pub(crate) fn forked_from(root: &ProcRoot, stat: &Stat, executable: &Executable) -> Option<u32> {
    let parent = Process::open(root, stat.parent).ok()?;
    let theirs = parent.stat().ok()?;
    let is_copy = stat.stack_start != 0 && theirs.stack_start == stat.stack_start;
    (is_copy && parent.executable().ok()?.path == executable.path).then_some(stat.parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeProc;

    fn silent(members: &[(u32, Option<u32>, bool)]) -> Vec<u32> {
        let member = |&(pid, forked_from, calls)| ForkRelation { pid, forked_from, calls };
        silent_copies(&members.iter().map(member).collect::<Vec<_>>()).into_iter().collect()
    }

    #[test]
    fn who_calls_mpi_is_a_rank_and_the_first_if_nobody_does() {
        assert_eq!(silent(&[(10, None, false), (11, None, false)]), Vec::<u32>::new());
        assert_eq!(silent(&[(10, None, false), (20, Some(10), false), (21, Some(20), false)]), [20, 21]);
        assert_eq!(silent(&[(10, None, true), (20, Some(10), false), (11, None, false)]), [20]);
        // Who waits for what it has forked is none.
        assert_eq!(silent(&[(10, None, false), (20, Some(10), true), (21, Some(10), true)]), [10]);
        // Of those whose first one is no process of MPI's each is one.
        assert_eq!(silent(&[(20, Some(10), false), (21, Some(10), false)]), Vec::<u32>::new());
        let used_again = [(20, Some(21), false), (21, Some(20), false)];
        assert_eq!(silent(&used_again), Vec::<u32>::new(), "numbers that have been used again");
    }

    #[test]
    fn a_copy_has_its_parents_stack_and_program() {
        let proc = FakeProc::new();
        let of = |pid: u32, parent: u32, comm: &str, stack: u64| {
            proc.process(pid, parent, comm, &[comm]);
            let line =
                format!("{pid} ({comm}) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {pid} 0 0 0 0 0 {stack} 0 0\n");
            proc.file(pid, "stat", line.as_bytes());
        };
        of(1, 0, "init", 7);
        of(10, 1, "ring", 4096);
        of(20, 10, "ring", 4096);
        of(21, 10, "ring", 8192);
        of(22, 10, "other", 4096);
        of(23, 1, "ring", 4096);
        of(24, 10, "ring", 0);
        let root = proc.root();
        let found = |pid: u32| {
            let process = Process::open(&root, pid).unwrap();
            forked_from(&root, &process.stat().unwrap(), &process.executable().unwrap())
        };
        assert_eq!([10, 20, 21, 22, 23, 24].map(found), [None, Some(10), None, None, None, None]);
    }
}
