//! Programs that hang, each in a way of its own: what is said of why, where every rank is, and for whom it really waits.

use crate::program::{
    self, CAUSES, CAUSES_CXX, CAUSES_F08, CAUSES_F77, CAUSES_MPI4PY, FILES_HANG, GROUPS_HANG, Language, OUTSIDE,
    POLLS_HANG, Program, REQUESTS_HANG, THREADS_HANG, WINDOWS_HANG,
};

/// One of them.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub program: Program,
    /// Its argument; empty: it takes none.
    pub name: &'static str,
    /// All that `mpiprobe hang` says of why, line by line; `@name` stands for a place in the function of that name, `(...)` for what
    /// is known of requests in some libraries only.
    pub told: &'static [&'static str],
    /// By rank: the function of MPI that it is in, and that of the program which has called it; of one with several threads any.
    pub calls: &'static [&'static [(&'static str, &'static str)]],
    /// By rank: those that it cannot go on without, or without one of them.
    pub waits: &'static [&'static [u32]],
    pub cause: Cause,
}

/// Why it hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Ranks wait for each other.
    Circle,
    /// These do something else than the others need.
    Ranks(&'static [u32]),
    DifferentRoots,
}

/// In place of a function of MPI: the rank is in the program itself, at that place.
pub const NOT_IN_MPI: &str = "";

/// In MPI by one call.
macro_rules! calls {
    ($(($function:expr, $place:literal)),* $(,)?) => { &[$(&[($function, $place)]),*] };
}

const fn circle(
    program: Program,
    name: &'static str,
    calls: &'static [&'static [(&'static str, &'static str)]],
    waits: &'static [&'static [u32]],
    told: &'static [&'static str],
) -> Case {
    Case { program, name, told, calls, waits, cause: Cause::Circle }
}

pub const CASES: [Case; 76] = [
    circle(
        CAUSES,
        "ring",
        calls![("MPI_Recv", "ring"), ("MPI_Recv", "ring"), ("MPI_Recv", "ring")],
        &[&[2], &[0], &[1]],
        &[
            "Deadlock: 0 → 2 → 1 → 0",
            "Rank 0 in MPI_Recv from 2 tag 7 4 B @ring waits for 2",
            "Rank 2 in MPI_Recv from 1 tag 7 4 B @ring waits for 1",
            "Rank 1 in MPI_Recv from 0 tag 7 4 B @ring waits for 0",
        ],
    ),
    circle(
        CAUSES,
        "sends",
        calls![("MPI_Send", "sends"), ("MPI_Send", "sends"), ("MPI_Barrier", "sends")],
        &[&[1], &[0], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Send to 1 tag 3 1.05 MB @sends waits for 1",
            "Rank 1 in MPI_Send to 0 tag 3 1.05 MB @sends waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "other-tag",
        calls![("MPI_Recv", "other_tag"), ("MPI_Ssend", "other_tag"), ("MPI_Barrier", "other_tag")],
        &[&[1], &[0], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from 1 tag 5 4 B @other_tag waits for 1 (tag differs: 6)",
            "Rank 1 in MPI_Ssend to 0 tag 6 4 B @other_tag waits for 0 (tag differs: 5)",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "other-communicator",
        calls![
            ("MPI_Recv", "other_communicator"),
            ("MPI_Ssend", "other_communicator"),
            ("MPI_Barrier", "other_communicator")
        ],
        &[&[1], &[0], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from 1 tag 5 4 B on twin @other_communicator waits for 1 (communicator differs: world)",
            "Rank 1 in MPI_Ssend to 0 tag 5 4 B @other_communicator waits for 0 (communicator differs: twin)",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "other-partner",
        calls![("MPI_Recv", "other_partner"), ("MPI_Ssend", "other_partner"), ("MPI_Barrier", "other_partner")],
        &[&[1], &[2], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 2 → 0",
            "Rank 0 in MPI_Recv from 1 tag 5 4 B @other_partner waits for 1",
            "Rank 1 in MPI_Ssend to 2 tag 5 4 B @other_partner waits for 2",
            "Rank 2 in MPI_Barrier @other_partner waits for 0, 1 to call MPI_Barrier",
        ],
    ),
    circle(
        CAUSES,
        "different-collectives",
        calls![
            ("MPI_Barrier", "different_collectives"),
            ("MPI_Allreduce", "different_collectives"),
            ("MPI_Allreduce", "different_collectives")
        ],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Barrier @different_collectives waits for 1, 2 to call MPI_Barrier",
            "Rank 1 in MPI_Allreduce 4 B @different_collectives waits for 0 to call MPI_Allreduce",
            "Rank 2 waits for them",
        ],
    ),
    Case {
        cause: Cause::DifferentRoots,
        ..circle(
            CAUSES,
            "different-roots",
            calls![
                ("MPI_Bcast", "different_roots"),
                ("MPI_Bcast", "different_roots"),
                ("MPI_Bcast", "different_roots")
            ],
            &[&[], &[], &[]],
            &["Ranks 0-2 are in MPI_Bcast with different roots: Rank 0 means 0, Rank 1 means 1, Rank 2 means 2"],
        )
    },
    circle(
        CAUSES,
        "different-order",
        calls![
            ("MPI_Barrier", "different_order"),
            ("MPI_Barrier", "different_order"),
            ("MPI_Barrier", "different_order")
        ],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Barrier on twin @different_order waits for 1, 2 to call MPI_Barrier",
            "Rank 1 in MPI_Barrier @different_order waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "half",
        calls![("MPI_Barrier", "half_of_them"), ("MPI_Allreduce", "half_of_them"), ("MPI_Recv", "half_of_them")],
        &[&[2], &[0, 2], &[1]],
        &[
            "Deadlock: 0 → 2 → 1 → 0",
            "Rank 0 in MPI_Barrier on half @half_of_them waits for 2 to call MPI_Barrier",
            "Rank 2 in MPI_Recv from 1 tag 8 4 B @half_of_them waits for 1",
            "Rank 1 in MPI_Allreduce 4 B @half_of_them waits for 0, 2 to call MPI_Allreduce",
        ],
    ),
    circle(
        CAUSES,
        "missing-root",
        calls![("MPI_Recv", "missing_root"), ("MPI_Bcast", "missing_root"), ("MPI_Bcast", "missing_root")],
        &[&[2], &[0], &[0]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Recv from 2 tag 9 4 B @missing_root waits for 2",
            "Rank 2 in MPI_Bcast root 0 4 B @missing_root waits for 0 to call MPI_Bcast",
            "Rank 1 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "missing-sender",
        calls![("MPI_Reduce", "missing_sender"), ("MPI_Barrier", "missing_sender"), ("MPI_Recv", "missing_sender")],
        &[&[2], &[0, 2], &[0]],
        &[
            "Deadlock among 0, 1, 2: each waits for another one of them",
            "Rank 0 in MPI_Reduce root 0 4 B @missing_sender waits for one of 1, 2 to call MPI_Reduce",
            "Rank 1 in MPI_Barrier @missing_sender waits for 0, 2 to call MPI_Barrier",
            "Rank 2 in MPI_Recv from 0 tag 9 4 B @missing_sender waits for 0",
        ],
    ),
    circle(
        CAUSES,
        "finalize",
        calls![("MPI_Recv", "finalize"), ("MPI_Finalize", "main"), ("MPI_Finalize", "main")],
        &[&[1], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from 1 tag 2 4 B @finalize waits for 1",
            "Rank 1 in MPI_Finalize @main waits for 0 to call MPI_Finalize",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "finalize-barrier",
        calls![("MPI_Finalize", "main"), ("MPI_Finalize", "main"), ("MPI_Barrier", "finalize_barrier")],
        &[&[2], &[2], &[0, 1]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Finalize @main waits for 2 to call MPI_Finalize",
            "Rank 2 in MPI_Barrier @finalize_barrier waits for 0, 1 to call MPI_Barrier",
            "Rank 1 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "split",
        calls![("MPI_Comm_split", "split"), ("MPI_Recv", "split"), ("MPI_Comm_split", "split")],
        &[&[1], &[0], &[1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Comm_split @split waits for 1 to call MPI_Comm_split",
            "Rank 1 in MPI_Recv from 0 tag 1 4 B @split waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "window",
        calls![("MPI_Win_create", "window"), ("MPI_Win_create", "window"), ("MPI_Recv", "window")],
        &[&[2], &[2], &[0]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Win_create @window waits for 2 to call MPI_Win_create",
            "Rank 2 in MPI_Recv from 0 tag 1 4 B @window waits for 0",
            "Rank 1 waits for them",
        ],
    ),
    Case {
        cause: Cause::Ranks(&[1]),
        ..circle(
            CAUSES,
            "stopped",
            &[&[("MPI_Barrier", "stopped")], &[], &[("MPI_Barrier", "stopped")]],
            &[&[1], &[], &[1]],
            &["Ranks 0,2 wait for rank 1, which is stopped by a signal"],
        )
    },
    circle(
        CAUSES,
        "requests",
        calls![("MPI_Waitall", "requests"), ("MPI_Barrier", "requests"), ("MPI_Barrier", "requests")],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Waitall for 2 requests (...) @requests waits for 1, 2",
            "Rank 1 in MPI_Barrier @requests waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "never-started",
        calls![("MPI_Recv", "never_started"), ("MPI_Barrier", "never_started"), ("MPI_Barrier", "never_started")],
        &[&[1], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from 1 tag 1 4 B @never_started waits for 1",
            "Rank 1 in MPI_Barrier @never_started waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "probe",
        calls![("MPI_Probe", "probe"), ("MPI_Probe", "probe"), ("MPI_Probe", "probe")],
        &[&[1], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Probe from 1 tag 2 @probe waits for 1",
            "Rank 1 in MPI_Probe from 0 tag 2 @probe waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "anybody",
        calls![("MPI_Recv", "anybody"), ("MPI_Recv", "anybody"), ("MPI_Recv", "anybody")],
        &[&[1, 2], &[0, 2], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from any tag 1 4 B @anybody waits for anybody",
            "Rank 1 in MPI_Recv from any tag 1 4 B @anybody waits for anybody",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "halo",
        calls![("MPI_Waitall", "halo"), ("MPI_Waitall", "halo"), ("MPI_Waitall", "halo")],
        &[&[1, 2], &[0, 2], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Waitall for 2 requests (...) @halo waits for 1, 2",
            "Rank 1 in MPI_Waitall for 2 requests (...) @halo waits for 0, 2",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "any-of-two",
        calls![("MPI_Waitany", "any_of_two"), ("MPI_Barrier", "any_of_two"), ("MPI_Barrier", "any_of_two")],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Waitany for 2 requests (...) @any_of_two waits for one of 1, 2",
            "Rank 1 in MPI_Barrier @any_of_two waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "from-anybody",
        calls![("MPI_Barrier", "from_anybody"), ("MPI_Wait", "from_anybody"), ("MPI_Barrier", "from_anybody")],
        &[&[1], &[0, 2], &[1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Barrier @from_anybody waits for 1 to call MPI_Barrier",
            "Rank 1 in MPI_Wait (...) @from_anybody waits for anybody",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "one-is-missing",
        calls![("MPI_Waitall", "one_is_missing"), ("MPI_Barrier", "one_is_missing"), ("MPI_Barrier", "one_is_missing")],
        &[&[2], &[0], &[0]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Waitall for 2 requests (...) @one_is_missing waits for 2",
            "Rank 2 in MPI_Barrier @one_is_missing waits for 0 to call MPI_Barrier",
            "Rank 1 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "not-that-one",
        calls![("MPI_Waitall", "not_that_one"), ("MPI_Recv", "not_that_one"), ("MPI_Recv", "not_that_one")],
        &[&[1], &[0], &[1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Waitall for 2 requests (...) @not_that_one waits for 1",
            "Rank 1 in MPI_Recv from 0 tag 1 4 B @not_that_one waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "barrier",
        calls![("MPI_Wait", "barrier"), ("MPI_Recv", "barrier"), ("MPI_Wait", "barrier")],
        &[&[1], &[0], &[1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Wait (...) @barrier waits for others to take part in a collective operation",
            "Rank 1 in MPI_Recv from 0 tag 3 4 B @barrier waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "persistent",
        calls![("MPI_Wait", "persistent"), ("MPI_Barrier", "persistent"), ("MPI_Barrier", "persistent")],
        &[&[2], &[0], &[0]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Wait (...) @persistent waits for 2",
            "Rank 2 in MPI_Barrier @persistent waits for 0 to call MPI_Barrier",
            "Rank 1 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "other-tag",
        calls![("MPI_Wait", "other_tag"), ("MPI_Ssend", "other_tag"), ("MPI_Barrier", "other_tag")],
        &[&[1], &[0], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Wait (...) @other_tag waits for 1 (tag differs: 6)",
            "Rank 1 in MPI_Ssend to 0 tag 6 4 B @other_tag waits for 0 (tag differs: 5)",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "large-send",
        calls![("MPI_Wait", "large_send"), ("MPI_Barrier", "large_send"), ("MPI_Barrier", "large_send")],
        &[&[1], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Wait (...) @large_send waits for 1",
            "Rank 1 in MPI_Barrier @large_send waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        REQUESTS_HANG,
        "exchange",
        calls![("MPI_Sendrecv", "exchange"), ("MPI_Sendrecv", "exchange"), ("MPI_Sendrecv", "exchange")],
        &[&[1, 2], &[0, 2], &[0, 1]],
        &[
            "Deadlock among 0, 1, 2: each waits for another one of them",
            "Rank 0 in MPI_Sendrecv to 1 tag 0 from 2 tag 7 1.05 MB @exchange waits for one of 1, 2 (tag differs: 7)",
            "Rank 1 in MPI_Sendrecv to 2 tag 1 from 0 tag 7 1.05 MB @exchange waits for one of 0, 2 (tag differs: 7)",
            "Rank 2 in MPI_Sendrecv to 0 tag 2 from 1 tag 7 1.05 MB @exchange waits for one of 0, 1 (tag differs: 7)",
        ],
    ),
    circle(
        WINDOWS_HANG,
        "fence",
        calls![("MPI_Win_fence", "fence"), ("MPI_Recv", "fence"), ("MPI_Win_fence", "fence")],
        &[&[1], &[0], &[1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Win_fence @fence waits for 1 to call MPI_Win_fence",
            "Rank 1 in MPI_Recv from 0 tag 1 4 B @fence waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        WINDOWS_HANG,
        "other-window",
        calls![("MPI_Win_fence", "other_window"), ("MPI_Win_fence", "other_window"), ("MPI_Win_fence", "other_window")],
        &[&[1], &[0, 2], &[1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Win_fence @other_window waits for 1 to call MPI_Win_fence",
            "Rank 1 in MPI_Win_fence @other_window waits for 0, 2 to call MPI_Win_fence",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        WINDOWS_HANG,
        "lock",
        calls![("MPI_Barrier", "lock"), ("MPI_Barrier", "lock"), ("MPI_Win_lock", "lock")],
        &[&[2], &[2], &[0, 1]],
        &[
            "Deadlock among 0, 1, 2: each waits for another one of them",
            "Rank 0 in MPI_Barrier @lock waits for 2 to call MPI_Barrier",
            "Rank 1 in MPI_Barrier @lock waits for 2 to call MPI_Barrier",
            "Rank 2 in MPI_Win_lock to 0 @lock waits for one of 0, 1 to give up the window",
        ],
    ),
    circle(
        WINDOWS_HANG,
        "no-post",
        calls![("MPI_Win_start", "no_post"), ("MPI_Barrier", "no_post"), ("MPI_Barrier", "no_post")],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock among 0, 1, 2: each waits for another one of them",
            "Rank 0 in MPI_Win_start @no_post waits for one of 1, 2 to call MPI_Win_post",
            "Rank 1 in MPI_Barrier @no_post waits for 0 to call MPI_Barrier",
            "Rank 2 in MPI_Barrier @no_post waits for 0 to call MPI_Barrier",
        ],
    ),
    circle(
        WINDOWS_HANG,
        "no-complete",
        calls![("MPI_Barrier", "no_complete"), ("MPI_Win_wait", "no_complete"), ("MPI_Barrier", "no_complete")],
        &[&[1], &[0, 2], &[1]],
        &[
            "Deadlock among 0, 1, 2: each waits for another one of them",
            "Rank 0 in MPI_Barrier @no_complete waits for 1 to call MPI_Barrier",
            "Rank 1 in MPI_Win_wait @no_complete waits for one of 0, 2 to call MPI_Win_complete",
            "Rank 2 in MPI_Barrier @no_complete waits for 1 to call MPI_Barrier",
        ],
    ),
    circle(
        THREADS_HANG,
        "lock",
        calls![("MPI_Recv", "receives"), ("MPI_Barrier", "lock")],
        &[&[1], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 (thread) in MPI_Recv from 1 tag 7 4 B @receives waits for 1",
            "Rank 1 in MPI_Barrier @lock waits for 0 to call MPI_Barrier",
        ],
    ),
    circle(
        THREADS_HANG,
        "ends",
        &[&[("MPI_Recv", "receives"), ("MPI_Probe", "probes")], &[("MPI_Barrier", "ends")]],
        &[&[1], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 (thread) in MPI_Recv from 1 tag 7 4 B @receives waits for 1",
            "Rank 1 in MPI_Barrier @ends waits for 0 to call MPI_Barrier",
        ],
    ),
    Case {
        cause: Cause::Ranks(&[0]),
        ..circle(
            THREADS_HANG,
            "one-computes",
            calls![("MPI_Recv", "receives"), ("MPI_Recv", "one_computes")],
            &[&[], &[0]],
            // How much of a core it has depends on who else wants it.
            &[],
        )
    },
    Case {
        cause: Cause::Ranks(&[1, 2, 3]),
        ..circle(
            OUTSIDE,
            "",
            &[
                &[("MPI_Allreduce", "wait_for_all")],
                &[(NOT_IN_MPI, "update")],
                &[(NOT_IN_MPI, "load_mesh")],
                &[],
                &[("MPI_Allreduce", "wait_for_all")],
            ],
            &[&[1, 2, 3], &[], &[], &[], &[1, 2, 3]],
            &[],
        )
    },
    circle(
        program::HANG,
        "",
        calls![("MPI_Barrier", "main"), ("MPI_Recv", "main"), ("MPI_Barrier", "main"), ("MPI_Barrier", "main")],
        &[&[1], &[0], &[1], &[1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Barrier @main waits for 1 to call MPI_Barrier",
            "Rank 1 in MPI_Recv from 0 tag 99 4 B @main waits for 0",
            "Ranks 2,3 wait for them",
        ],
    ),
    circle(program::HANG_MPIF, "", calls![("MPI_Barrier", "hang_mpif"), ("MPI_Recv", "hang_mpif")], &[&[1], &[0]], &[]),
    circle(program::HANG_F08, "", calls![("MPI_Barrier", "hang_f08"), ("MPI_Recv", "hang_f08")], &[&[1], &[0]], &[]),
    circle(
        CAUSES_CXX,
        "",
        calls![
            ("MPI_Recv", "halo::Exchange<double>::from_left"),
            ("MPI_Recv", "halo::Exchange<double>::from_left"),
            ("MPI_Recv", "halo::Exchange<double>::from_left")
        ],
        &[&[2], &[0], &[1]],
        &[],
    ),
    circle(
        CAUSES_F77,
        "",
        calls![("MPI_Ssend", "step"), ("MPI_Recv", "step"), ("MPI_Barrier", "step")],
        &[&[1], &[0], &[0, 1]],
        &[],
    ),
    circle(
        CAUSES_F08,
        "",
        calls![
            ("MPI_Barrier", "solver::advance"),
            ("MPI_Allreduce", "solver::advance"),
            ("MPI_Barrier", "solver::advance")
        ],
        &[&[1], &[0, 2], &[1]],
        &[],
    ),
    circle(
        CAUSES_MPI4PY,
        "receive",
        calls![("MPI_Barrier", "advance"), ("MPI_Recv", "Halo.receive"), ("MPI_Barrier", "advance")],
        &[&[1], &[0], &[1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Barrier @advance waits for 1 to call MPI_Barrier",
            "Rank 1 in MPI_Recv from 0 tag 99 32 B @Halo.receive waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES_MPI4PY,
        "sends",
        calls![("MPI_Ssend", "Halo.send_right"), ("MPI_Ssend", "Halo.send_right"), ("MPI_Ssend", "Halo.send_right")],
        &[&[1], &[2], &[0]],
        &[
            "Deadlock: 0 → 1 → 2 → 0",
            "Rank 0 in MPI_Ssend to 1 tag 4 32 B @Halo.send_right waits for 1",
            "Rank 1 in MPI_Ssend to 2 tag 4 32 B @Halo.send_right waits for 2",
            "Rank 2 in MPI_Ssend to 0 tag 4 32 B @Halo.send_right waits for 0",
        ],
    ),
    circle(
        CAUSES_MPI4PY,
        "collectives",
        calls![("MPI_Barrier", "residual"), ("MPI_Allreduce", "residual"), ("MPI_Allreduce", "residual")],
        &[&[1, 2], &[0], &[0]],
        &[],
    ),
    // Compiled with optimisation, and for Open MPI, in which nothing else keeps what it was given.
    circle(
        CAUSES,
        "passed",
        calls![("MPI_Recv", "receive_from"), ("MPI_Recv", "receive_from"), ("MPI_Recv", "receive_from")],
        &[&[2], &[0], &[1]],
        &[
            "Deadlock: 0 → 2 → 1 → 0",
            "Rank 0 in MPI_Recv from 2 tag 31 4 B on twin @receive_from waits for 2",
            "Rank 2 in MPI_Recv from 1 tag 31 4 B on twin @receive_from waits for 1",
            "Rank 1 in MPI_Recv from 0 tag 31 4 B on twin @receive_from waits for 0",
        ],
    ),
    // How objects are received is mpi4py's matter.
    circle(
        CAUSES_MPI4PY,
        "objects",
        calls![
            ("MPI_Mprobe", "Halo.objects_from_left"),
            ("MPI_Mprobe", "Halo.objects_from_left"),
            ("MPI_Mprobe", "Halo.objects_from_left")
        ],
        &[&[2], &[0], &[1]],
        &[],
    ),
    Case {
        cause: Cause::Ranks(&[1, 2]),
        ..circle(
            CAUSES_MPI4PY,
            "outside",
            calls![("MPI_Barrier", "outside"), (NOT_IN_MPI, "smooth"), (NOT_IN_MPI, "load_mesh")],
            &[&[1, 2], &[], &[]],
            &[],
        )
    },
    // Which of the collective calls that begin at once MPI has begun last, it does not tell.
    circle(
        REQUESTS_HANG,
        "barrier-without-one",
        calls![
            ("MPI_Wait", "barrier_without_one"),
            ("MPI_Wait", "barrier_without_one"),
            ("MPI_Recv", "barrier_without_one")
        ],
        &[&[2], &[2], &[0]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Wait (...) @barrier_without_one waits for others to take part in a collective operation",
            "Rank 2 in MPI_Recv from 0 tag 3 4 B @barrier_without_one waits for 0",
            "Rank 1 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "gather",
        calls![("MPI_Gather", "gather"), ("MPI_Recv", "gather"), ("MPI_Barrier", "gather")],
        &[&[1], &[2], &[0, 1]],
        &[
            "Deadlock: 1 → 2 → 1",
            "Rank 1 in MPI_Recv from 2 tag 8 4 B @gather waits for 2",
            "Rank 2 in MPI_Barrier @gather waits for 0, 1 to call MPI_Barrier",
            "Rank 0 waits for them",
        ],
    ),
    circle(
        WINDOWS_HANG,
        "no-posts",
        calls![("MPI_Win_start", "no_posts"), ("MPI_Win_start", "no_posts"), ("MPI_Barrier", "no_posts")],
        &[&[1], &[0], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Win_start @no_posts waits for 1 to call MPI_Win_post",
            "Rank 1 in MPI_Win_start @no_posts waits for 0 to call MPI_Win_post",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        CAUSES,
        "itself",
        calls![("MPI_Recv", "itself"), ("MPI_Ssend", "itself"), ("MPI_Barrier", "itself")],
        &[&[0], &[1], &[0, 1]],
        &[
            "Deadlock: 0 waits for itself",
            "Rank 0 in MPI_Recv from 0 tag 4 4 B @itself waits for itself",
            "Rank 2 waits for it",
            "Deadlock: 1 waits for itself",
            "Rank 1 in MPI_Ssend to 1 tag 4 4 B @itself waits for itself",
            "Rank 2 waits for it",
        ],
    ),
    circle(
        POLLS_HANG,
        "test",
        calls![("MPI_Test", "test"), ("MPI_Recv", "test"), ("MPI_Barrier", "test")],
        &[&[1], &[0], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 polls MPI_Test (...) @test waits for 1",
            "Rank 1 in MPI_Recv from 0 tag 3 4 B @test waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        POLLS_HANG,
        "iprobe",
        calls![("MPI_Iprobe", "iprobe"), ("MPI_Ssend", "iprobe"), ("MPI_Barrier", "iprobe")],
        &[&[1], &[0], &[0, 1]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 polls MPI_Iprobe from 1 tag 2 @iprobe waits for 1 (tag differs: 6)",
            "Rank 1 in MPI_Ssend to 0 tag 6 4 B @iprobe waits for 0 (tag differs: 2)",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        POLLS_HANG,
        "testall",
        calls![("MPI_Testall", "testall"), ("MPI_Barrier", "testall"), ("MPI_Barrier", "testall")],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 polls MPI_Testall for 2 requests (...) @testall waits for 1, 2",
            "Rank 1 in MPI_Barrier @testall waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        POLLS_HANG,
        "testany",
        calls![("MPI_Testany", "testany"), ("MPI_Barrier", "testany"), ("MPI_Barrier", "testany")],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 polls MPI_Testany for 2 requests (...) @testany waits for one of 1, 2",
            "Rank 1 in MPI_Barrier @testany waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        POLLS_HANG,
        "testsome",
        calls![("MPI_Testsome", "testsome"), ("MPI_Barrier", "testsome"), ("MPI_Barrier", "testsome")],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 polls MPI_Testsome for 2 requests (...) @testsome waits for one of 1, 2",
            "Rank 1 in MPI_Barrier @testsome waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    circle(
        POLLS_HANG,
        "get-status",
        calls![
            ("MPI_Request_get_status", "get_status"),
            ("MPI_Request_get_status", "get_status"),
            ("MPI_Request_get_status", "get_status")
        ],
        &[&[1], &[2], &[0]],
        &[
            "Deadlock: 0 → 1 → 2 → 0",
            "Rank 0 polls MPI_Request_get_status (...) @get_status waits for 1",
            "Rank 1 polls MPI_Request_get_status (...) @get_status waits for 2",
            "Rank 2 polls MPI_Request_get_status (...) @get_status waits for 0",
        ],
    ),
    circle(
        POLLS_HANG,
        "iprobe-any",
        calls![("MPI_Iprobe", "iprobe_any"), ("MPI_Barrier", "iprobe_any"), ("MPI_Barrier", "iprobe_any")],
        &[&[1, 2], &[0], &[0]],
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 polls MPI_Iprobe from any tag 2 @iprobe_any waits for anybody",
            "Rank 1 in MPI_Barrier @iprobe_any waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    Case {
        cause: Cause::Ranks(&[1]),
        ..circle(
            POLLS_HANG,
            "missing",
            calls![("MPI_Test", "missing"), (NOT_IN_MPI, "missing"), ("MPI_Barrier", "missing")],
            &[&[1], &[], &[0, 1]],
            &[],
        )
    },
    circle(
        GROUPS_HANG,
        "messages",
        calls![
            ("MPI_Recv", "messages"),
            ("MPI_Barrier", "messages"),
            ("MPI_Barrier", "messages"),
            ("MPI_Recv", "messages")
        ],
        &[&[3], &[0, 3], &[0, 3], &[0]],
        &[
            "Deadlock: 0 → 3 → 0",
            "Rank 0 in MPI_Recv from 1 tag 5 4 B on between @messages waits for 3",
            "Rank 3 in MPI_Recv from 0 tag 5 4 B on between @messages waits for 0",
            "Ranks 1,2 wait for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "other-tag",
        calls![
            ("MPI_Barrier", "other_tag"),
            ("MPI_Ssend", "other_tag"),
            ("MPI_Recv", "other_tag"),
            ("MPI_Barrier", "other_tag")
        ],
        &[&[1, 2], &[2], &[1], &[1, 2]],
        &[
            "Deadlock: 1 → 2 → 1",
            "Rank 1 in MPI_Ssend to 0 tag 6 4 B on between @other_tag waits for 2 (tag differs: 5)",
            "Rank 2 in MPI_Recv from 1 tag 5 4 B on between @other_tag waits for 1 (tag differs: 6)",
            "Ranks 0,3 wait for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "any-of-them",
        calls![
            ("MPI_Recv", "any_of_them"),
            ("MPI_Barrier", "any_of_them"),
            ("MPI_Barrier", "any_of_them"),
            ("MPI_Barrier", "any_of_them")
        ],
        &[&[2, 3], &[0], &[0], &[0]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Recv from any tag 5 4 B on between @any_of_them waits for anybody",
            "Rank 2 in MPI_Barrier @any_of_them waits for 0 to call MPI_Barrier",
            "Ranks 1,3 wait for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "barrier",
        calls![
            ("MPI_Barrier", "barrier"),
            ("MPI_Barrier", "barrier"),
            ("MPI_Barrier", "barrier"),
            ("MPI_Recv", "barrier")
        ],
        &[&[3], &[3], &[3], &[0]],
        &[
            "Deadlock: 0 → 3 → 0",
            "Rank 0 in MPI_Barrier on between @barrier waits for 3 to call MPI_Barrier",
            "Rank 3 in MPI_Recv from 0 tag 5 4 B @barrier waits for 0",
            "Ranks 1,2 wait for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "neighbours",
        calls![
            ("MPI_Barrier", "neighbours"),
            ("MPI_Neighbor_allgather", "neighbours"),
            ("MPI_Recv", "neighbours"),
            ("MPI_Neighbor_allgather", "neighbours")
        ],
        &[&[1, 2, 3], &[2], &[0], &[2]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Barrier @neighbours waits for 1, 2, 3 to call MPI_Barrier",
            "Rank 2 in MPI_Recv from 0 tag 5 4 B @neighbours waits for 0",
            "Ranks 1,3 wait for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "graph",
        calls![
            ("MPI_Barrier", "graph"),
            ("MPI_Neighbor_alltoall", "graph"),
            ("MPI_Recv", "graph"),
            ("MPI_Barrier", "graph")
        ],
        &[&[1, 2], &[2], &[3], &[1, 2]],
        &[
            "Deadlock: 2 → 3 → 2",
            "Rank 2 in MPI_Recv from 3 tag 5 4 B @graph waits for 3",
            "Rank 3 in MPI_Barrier @graph waits for 1, 2 to call MPI_Barrier",
            "Ranks 0,1 wait for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "create",
        calls![
            ("MPI_Intercomm_create", "lower"),
            ("MPI_Intercomm_create", "lower"),
            ("MPI_Intercomm_create", "upper"),
            ("MPI_Recv", "create")
        ],
        &[&[2], &[0], &[3], &[0]],
        &[
            "Deadlock: 0 → 2 → 3 → 0",
            "Rank 0 in MPI_Intercomm_create on a communicator of 2 @lower waits for 2 to speak for its group",
            "Rank 2 in MPI_Intercomm_create on a communicator of 2 @upper waits for 3 to call MPI_Intercomm_create",
            "Rank 3 in MPI_Recv from 0 tag 5 4 B @create waits for 0",
            "Rank 1 waits for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "leader",
        calls![
            ("MPI_Intercomm_create", "lower"),
            ("MPI_Intercomm_create", "lower"),
            ("MPI_Recv", "leader"),
            ("MPI_Barrier", "leader")
        ],
        &[&[2], &[0], &[0], &[0, 1, 2]],
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Intercomm_create on a communicator of 2 @lower waits for 2 to speak for its group",
            "Rank 2 in MPI_Recv from 0 tag 5 4 B @leader waits for 0",
            "Ranks 1,3 wait for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "merge",
        calls![
            ("MPI_Intercomm_merge", "merge"),
            ("MPI_Recv", "merge"),
            ("MPI_Intercomm_merge", "merge"),
            ("MPI_Intercomm_merge", "merge")
        ],
        &[&[1], &[2], &[1], &[1]],
        &[
            "Deadlock: 1 → 2 → 1",
            "Rank 1 in MPI_Recv from 2 tag 5 4 B @merge waits for 2",
            "Rank 2 in MPI_Intercomm_merge on between @merge waits for 1 to call MPI_Intercomm_merge",
            "Ranks 0,3 wait for them",
        ],
    ),
    circle(
        GROUPS_HANG,
        "create-group",
        calls![
            ("MPI_Comm_create_group", "create_group"),
            ("MPI_Barrier", "create_group"),
            ("MPI_Comm_create_group", "create_group"),
            ("MPI_Recv", "create_group")
        ],
        &[&[3], &[0, 2, 3], &[3], &[0]],
        &[
            "Deadlock: 0 → 3 → 0",
            "Rank 0 in MPI_Comm_create_group @create_group waits for 3 to call MPI_Comm_create_group",
            "Rank 3 in MPI_Recv from 0 tag 5 4 B @create_group waits for 0",
            "Ranks 1,2 wait for them",
        ],
    ),
    circle(
        FILES_HANG,
        "set-view",
        calls![("MPI_File_set_view", "set_view"), ("MPI_File_set_view", "set_view"), ("MPI_Recv", "leave_out")],
        &[&[2], &[2], &[0]],
        &[
            "Deadlock among 0, 1, 2: each waits for another one of them",
            "Rank 0 in MPI_File_set_view @set_view waits for one of 1, 2 to do its part with the file",
            "Rank 1 in MPI_File_set_view @set_view waits for one of 0, 2 to do its part with the file",
            "Rank 2 in MPI_Recv from 0 tag 5 4 B @leave_out waits for 0",
        ],
    ),
    circle(
        FILES_HANG,
        "write-all",
        calls![
            ("MPI_File_write_at_all", "write_all"),
            ("MPI_Recv", "leave_out"),
            ("MPI_File_write_at_all", "write_all")
        ],
        &[&[1], &[0], &[1]],
        &[
            "Deadlock among 0, 1, 2: each waits for another one of them",
            "Rank 0 in MPI_File_write_at_all 4 B @write_all waits for one of 1, 2 to do its part with the file",
            "Rank 1 in MPI_Recv from 0 tag 5 4 B @leave_out waits for 0",
            "Rank 2 in MPI_File_write_at_all 4 B @write_all waits for one of 0, 1 to do its part with the file",
        ],
    ),
    circle(
        FILES_HANG,
        "close",
        calls![("MPI_File_close", "close_file"), ("MPI_File_close", "close_file"), ("MPI_Recv", "leave_out")],
        &[&[2], &[2], &[0]],
        &[
            "Deadlock among 0, 1, 2: each waits for another one of them",
            "Rank 0 in MPI_File_close @close_file waits for one of 1, 2 to do its part with the file",
            "Rank 1 in MPI_File_close @close_file waits for one of 0, 2 to do its part with the file",
            "Rank 2 in MPI_Recv from 0 tag 5 4 B @leave_out waits for 0",
        ],
    ),
];

/// Variants of the same in which ranks go on: programs, their argument, and with how many ranks.
pub const THAT_GO_ON: [(Program, &str, u32); 12] = [
    (CAUSES, "none", 3),
    (REQUESTS_HANG, "none", 3),
    (WINDOWS_HANG, "none", 3),
    (THREADS_HANG, "none", 2),
    (CAUSES, "ping-pong", 3),
    (POLLS_HANG, "ping-pong", 3),
    (POLLS_HANG, "counts", 3),
    (POLLS_HANG, "clock", 3),
    (POLLS_HANG, "memory", 3),
    (POLLS_HANG, "elsewhere", 3),
    (GROUPS_HANG, "none", 4),
    (FILES_HANG, "none", 3),
];

impl Case {
    /// For people and names of trials.
    pub fn title(&self) -> String {
        let name = self.name.replace('-', "_");
        if name.is_empty() { self.program.name.to_owned() } else { format!("{}_{name}", self.program.name) }
    }

    pub fn ranks(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(u32::MAX)
    }

    pub fn language(&self) -> Language {
        self.program.language
    }
}
