//! One communicator over the ranks that are in it, whatever their handles: members, names, origin, and what went over it, compared with
//! what the truth library was told by MPI.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::{AllTraffic, WholeCommunicator};
use mpiprobe_tests::traffic::is_compared;
use mpiprobe_tests::truth::{Image, Peer, Scope, Snapshot};
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, program};

use crate::check::complete;
use crate::{trial, trial_with};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let agreement = |name: &str, gates: &'static [&'static str]| {
        trial_with(mpi, Language::C, &format!("communicators_are_recognised_{name}"), move || agree(mpi, gates))
    };
    vec![
        agreement("from_the_start", &["start", "1"]),
        agreement("when_they_exist", &["2"]),
        trial(mpi, Language::C, "communicators_have_names_that_say_where_they_come_from", origins),
        trial(mpi, Language::C, "more_communicators_than_there_is_room_for", many),
        trial(mpi, Language::C, "communicators_are_chosen_by_name", chosen),
    ]
}

/// Observes the communicators of the program from the first of the gates to its end. Gives the truth at this gate and at the end.
fn observe(mpi: Mpi, gates: &[&str], options: &[&str]) -> Result<(Profile, Snapshot, Snapshot), Failed> {
    let builder = Job::builder(mpi, program::SEMANTICS).args(["communicators"]).gates(gates).semantics().own_name();
    let mut job = builder.spawn()?;
    let (first, others) = gates.split_first().ok_or("no gate")?;
    job.wait_for_gate(first)?;
    let before = job.snapshot()?;
    let mut profiler = Profiler::observe(["-v", "--traffic", "--pid-of", job.called()].iter().chain(options))?;
    job.open_gate(first)?;
    for gate in others {
        // Held once more, until MPI has been initialised.
        job.wait_for_gate(gate)?;
        profiler.wait_for_meaning(job.ranks()?.len())?;
        job.open_gate(gate)?;
    }
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    Ok((profile, before, job.snapshot()?))
}

/// Name if the program has given one, members, those of the other group.
type Description = (String, Vec<Option<u32>>, Vec<Option<u32>>);

/// Calls, bytes sent and received, calls of which they are unknown, by communicator and function.
type Sums = BTreeMap<(Description, String), [u64; 4]>;

fn described(name: &str, members: &[Option<u32>], remote: &[Option<u32>]) -> Description {
    let sorted = |members: &[Option<u32>]| members.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let (own, other): (Vec<_>, Vec<_>) = (sorted(members), sorted(remote));
    // Each side calls the other one remote.
    if other.is_empty() || own < other { (name.into(), own, other) } else { (name.into(), other, own) }
}

fn of_scope(scope: &Scope) -> Description {
    // Open MPI makes up names for communicators that have none.
    let made_up = ["MPI_COMM_WORLD", "MPI_COMM_SELF", "MPI COMMUNICATOR ", "MPI_COMMUNICATOR "];
    let name = if made_up.iter().any(|start| scope.name.starts_with(start)) { "" } else { &scope.name };
    described(name, &scope.members, &scope.remote_members)
}

fn of_profile(row: &WholeCommunicator) -> Description {
    let name = if row.is_named { &row.name } else { "" };
    described(name, row.members.as_deref().unwrap_or_default(), row.remote_members.as_deref().unwrap_or_default())
}

fn add(sums: &mut Sums, key: (Description, String), amounts: [u64; 4]) {
    for (sum, amount) in sums.entry(key).or_default().iter_mut().zip(amounts) {
        *sum = sum.wrapping_add(amount);
    }
}

fn told(after: &Snapshot, before: &Snapshot) -> Sums {
    let mut sums = Sums::new();
    let entries = |image: &Image| image.traffic.entries.clone();
    for (snapshot, sign) in [(after, 1u64), (before, u64::MAX)] {
        for (key, amounts) in snapshot.ranks.values().flat_map(entries) {
            let Some(scope) = key.scope.as_ref().filter(|_| key.started_by.is_none()) else { continue };
            if is_compared(&key.function) {
                let amounts = [amounts.calls, amounts.sent, amounts.received.bytes, 0];
                let key = (of_scope(scope.communicator()), key.function.clone());
                add(&mut sums, key, amounts.map(|amount| amount.wrapping_mul(sign)));
            }
        }
    }
    sums.retain(|_, amounts| *amounts != [0; 4]);
    sums
}

fn seen(traffic: &AllTraffic) -> Sums {
    let mut sums = Sums::new();
    for communicator in &traffic.communicators {
        for row in communicator.functions.iter().filter(|row| is_compared(&row.function)) {
            let amounts = &row.amounts;
            let amounts = [amounts.calls, amounts.sent_bytes, amounts.received_bytes, amounts.calls_of_unknown_bytes];
            add(&mut sums, (of_profile(communicator), row.function.clone()), amounts);
        }
    }
    sums
}

/// Invariant ONE-COMMUNICATOR.
fn agree(mpi: Mpi, gates: &[&str]) -> Result<(), Failed> {
    let (profile, before, after) = observe(mpi, gates, &[])?;
    let traffic = profile.traffic.as_ref().ok_or("no traffic")?;
    let told = told(&after, &before);
    assert_eq!(seen(traffic), told);
    let named: BTreeSet<&str> = told.keys().map(|((name, ..), _)| name.as_str()).collect();
    for name in ["copy", "odd", "even", "grid", "bridge", "named later", "last name"] {
        assert!(named.contains(name), "{name} is not in {named:?}");
    }
    // Sizes are those of all communicators, and pairs those of all flows.
    let by_size: BTreeMap<u32, u64> =
        traffic.communicator_sizes.iter().map(|row| (row.size, row.amounts.calls)).collect();
    let mut expected = BTreeMap::new();
    for row in &traffic.communicators {
        let size = row.size.ok_or("a communicator without a size")? + row.remote_size.unwrap_or(0);
        *expected.entry(size).or_default() += row.amounts.calls;
    }
    assert_eq!(by_size, expected);
    pairs(traffic, &after, &before);
    Ok(())
}

/// The communication matrix, as far as it is of functions whose amounts are known when they return.
fn pairs(traffic: &AllTraffic, after: &Snapshot, before: &Snapshot) {
    let mut sent: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for (snapshot, sign) in [(after, 1u64), (before, u64::MAX)] {
        for (rank, image) in &snapshot.ranks {
            for (key, amounts) in &image.traffic.entries {
                if let Peer::Rank(peer) = key.peer {
                    let sum = sent.entry((*rank, peer)).or_default();
                    *sum = sum.wrapping_add(amounts.sent.wrapping_mul(sign));
                }
            }
        }
    }
    sent.retain(|_, bytes| *bytes != 0);
    let seen: BTreeMap<(u32, u32), u64> = traffic
        .partners
        .iter()
        .filter(|pair| pair.amounts.sent_bytes > 0)
        .map(|pair| ((pair.rank, pair.peer), pair.amounts.sent_bytes))
        .collect();
    assert_eq!(seen, sent);
}

fn origins(mpi: Mpi) -> Result<(), Failed> {
    let (profile, ..) = observe(mpi, &["start", "1"], &[])?;
    mpiprobe_tests::origins::are_told(&profile, true)
}

/// What does not fit into the table is still exact in all: it is only not told apart.
fn many(mpi: Mpi) -> Result<(), Failed> {
    const NUMBER: u64 = 120;
    let number = NUMBER.to_string();
    let mut job =
        Job::builder(mpi, program::MANY_COMMUNICATORS).args([&number]).gates(&["1"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let options = ["--traffic", "--max-communicators", "200", "--pid-of", job.called()];
    let profiler = Profiler::observe(options)?;
    job.open_gate("1")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    let traffic = profile.traffic.ok_or("no traffic")?;
    // Three quarters of the places are for communicators that are told apart; each rank has the world besides those of the loop.
    let apart: u64 = traffic.communicators.iter().map(|row| u64::from(row.ranks)).sum();
    let others = traffic.other_communicators.ok_or("nothing was left over")?;
    assert_eq!(apart + others.communicators, 4 * (NUMBER + 1));
    assert_eq!(apart, 149);
    let listed = traffic.communicators.iter().flat_map(|row| &row.functions);
    let listed = listed.filter(|row| row.function == "MPI_Allreduce").map(|row| row.amounts.calls);
    assert_eq!(listed.sum::<u64>() + others.amounts.calls, 4 * (NUMBER + 1));
    assert_eq!(others.amounts.calls_of_unknown_bytes, 0);
    assert_eq!(
        (others.amounts.sent_bytes, others.amounts.received_bytes),
        (4 * others.amounts.calls, 4 * others.amounts.calls)
    );
    // Neither halves nor turns are mixed up.
    for row in traffic.communicators.iter().filter(|row| row.name != "world") {
        let size = row.size.unwrap_or(0);
        assert!(row.ranks <= size && (size == 2 || size == 4), "{row:?}");
        assert_eq!(row.amounts.calls, u64::from(row.ranks), "{row:?}");
    }
    Ok(())
}

fn chosen(mpi: Mpi) -> Result<(), Failed> {
    let (profile, ..) = observe(mpi, &["start", "1"], &["--comm", "odd", "--comm", "SPLIT#3 *"])?;
    let traffic = profile.traffic.as_ref().ok_or("no traffic")?;
    let names: Vec<&str> = traffic.communicators.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["odd", "split#3 of world"]);
    let shown: BTreeSet<u32> = traffic.communicators.iter().map(|row| row.id).collect();
    for row in profile.ranks.iter().filter_map(|rank| rank.traffic.as_ref()) {
        let known: BTreeSet<u32> = row
            .communicators
            .iter()
            .filter(|known| known.id.is_some_and(|id| shown.contains(&id)))
            .map(|known| known.number)
            .collect();
        assert!(!row.flows.is_empty());
        assert!(
            row.flows.iter().all(|flow| flow.communicator.is_some_and(|number| known.contains(&number))),
            "{row:?}"
        );
    }
    let calls: u64 = traffic.communicator_sizes.iter().map(|row| row.amounts.calls).sum();
    assert_eq!(calls, traffic.communicators.iter().map(|row| row.amounts.calls).sum::<u64>());
    Ok(())
}
