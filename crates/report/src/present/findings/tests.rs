//! Each diagnosis, of what it warns and of what it does not.

use mpiprobe_discover::Failure;
use mpiprobe_model::{
    Amounts, CallArguments, Efficiency, FlowRow, FunctionProfile, FunctionTraffic, OpenCallInfo, OwnCost, Partner,
    Profile, RankState, Volume,
    sample::{self, SECOND, function, open, over_world, peer, pending, ranks, receive},
};

use super::{FindingText, findings};

fn job(number: u32) -> Profile {
    sample::profile(ranks(number))
}

/// What is said by that name.
fn found(profile: &Profile, name: &str) -> Option<String> {
    let found = findings(profile).into_iter().find(|finding| finding.name == name)?;
    for text in [found.meaning, found.advice] {
        assert!(text.ends_with('.') && text.len() > 20, "{name}: {text}");
    }
    Some(found.found)
}

/// The same profile with something changed.
fn with(mut profile: Profile, change: impl FnOnce(&mut Profile)) -> Profile {
    change(&mut profile);
    profile
}

#[test]
fn of_a_sound_job_nothing_is_said() {
    assert_eq!(findings(&job(4)), []);
    assert_eq!(findings(&job(0)), []);
}

#[test]
fn the_gravest_come_first() {
    let profile = with(job(2), |profile| {
        profile.own_cost.percent_of_wall = 50.0;
        profile.complete = false;
        profile.ranks[0].open_calls.push(receive(1, 1));
        profile.ranks[1].open_calls.push(receive(0, 1));
        profile.ranks.push(sample::profile(ranks(3)).ranks[2].clone());
        (profile.ranks[2].state, profile.ranks[2].failure) = (RankState::Ended, Some(Failure::Signal(11)));
    });
    let names = |profile: &Profile| findings(profile).iter().map(|finding| finding.name).collect::<Vec<_>>();
    assert_eq!(names(&profile), ["failed", "deadlock", "incomplete", "unusually long call", "high own cost"]);
    // Somebody has ended it because it did not go on.
    let ended = with(profile, |profile| profile.ranks[2].failure = Some(Failure::Signal(15)));
    assert_eq!(names(&ended)[..2], ["deadlock", "failed"]);
}

#[test]
fn what_costs_most_comes_first_of_what_is_not_grave() {
    let profile = with(job(1), |profile| {
        profile.functions.push(moving("MPI_File_write_at", 1000, 100, true));
        let mut polling = function("MPI_Iprobe", 100_000, 1_000);
        polling.all.wall_percent = 10.0;
        profile.functions.push(polling);
    });
    let names = |profile: &Profile| findings(profile).iter().map(|finding| finding.name).collect::<Vec<_>>();
    assert_eq!(names(&profile), ["polling", "tiny I/O"]);
    let slower = with(profile, |profile| profile.functions[0].all.time_ns = SECOND);
    assert_eq!(names(&slower), ["tiny I/O", "polling"]);
}

/// A flow of a rank in the sample, of so many seconds.
fn flow(function: &'static str, site: &str, peer: Option<u32>, seconds: u64, waited: u64) -> FlowRow {
    FlowRow {
        function,
        started_by: None,
        communicator: None,
        partner: if peer.is_some() { Partner::Rank } else { Partner::Nobody },
        peer,
        call_site: 0x40,
        site: Some(site.into()),
        amounts: Amounts { calls: 10, time_ns: seconds * SECOND, ..Amounts::default() },
        completed: 0,
        pending_ns: 0,
        waited_ns: waited * SECOND,
    }
}

fn at_places(profile: &Profile) -> Vec<FindingText> {
    findings(profile).into_iter().filter(|finding| finding.name == "much time at one place").collect()
}

#[test]
fn much_time_at_one_place() {
    let flows = |profile: &mut Profile, rank: usize, flows: Vec<FlowRow>| {
        profile.ranks[rank].traffic.as_mut().unwrap().flows = flows.into();
    };
    let profile = with(job(4), |profile| {
        let waitall = |seconds| flow("MPI_Waitall", "halo.c:91 in step", None, seconds, 0);
        let posted = |waited| {
            [flow("MPI_Irecv", "halo.c:80 in step", Some(2), 0, waited), flow("MPI_Isend", "halo.c:81", Some(0), 0, 1)]
        };
        flows(profile, 3, [vec![waitall(8)], posted(7).into()].concat());
        flows(profile, 1, [vec![waitall(2)], posted(1).into()].concat());
        flows(profile, 0, vec![waitall(1), flow("MPI_Send", "a.c:1", Some(1), 1, 0)]);
    });
    let [found] = at_places(&profile).try_into().unwrap();
    assert_eq!(
        found.found,
        "rank 3 spends 80.0 % of its time in MPI_Waitall at halo.c:91 in step, most of it for messages from rank 2; \
         another rank 20.0 %"
    );
    assert_eq!(
        found.evidence,
        ["rank 3: 8.00 s in 10 calls, 80.0 %, 87.5 % for messages from rank 2", "rank 1: 2.00 s in 10 calls, 20.0 %"]
    );
    let short = with(profile, |profile| profile.observed_ns = SECOND - 1);
    assert_eq!(at_places(&short), []);
}

#[test]
fn the_partner_of_a_call_that_has_one_is_its_own() {
    let of = |flows: Vec<FlowRow>| {
        let profile = with(job(2), |profile| profile.ranks[0].traffic.as_mut().unwrap().flows = flows.into());
        at_places(&profile).into_iter().map(|finding| finding.found).collect::<Vec<_>>()
    };
    assert_eq!(
        of(vec![flow("MPI_Ssend", "a.c:1", Some(1), 3, 0)]),
        ["rank 0 spends 30.0 % of its time in MPI_Ssend at a.c:1, most of it for messages to rank 1"]
    );
    let two = vec![flow("MPI_Sendrecv", "a.c:1", Some(1), 3, 0), flow("MPI_Sendrecv", "a.c:1", Some(0), 0, 0)];
    assert_eq!(of(two), ["rank 0 spends 30.0 % of its time in MPI_Sendrecv at a.c:1"]);
    let half = |peer| flow("MPI_Recv", "a.c:1", Some(peer), 2, 0);
    assert_eq!(of(vec![half(0), half(1)]), ["rank 0 spends 40.0 % of its time in MPI_Recv at a.c:1"]);
    let others = vec![flow("MPI_Iprobe", "a.c:1", Some(1), 9, 0), flow("MPI_Init", "a.c:2", None, 9, 0)];
    assert_eq!(of(others), [""; 0]);
}

#[test]
fn without_traffic_places_are_functions() {
    let profile = with(job(2), |profile| {
        for rank in &mut profile.ranks {
            rank.traffic = None;
            rank.functions = vec![function("MPI_Barrier", 1, 5 * SECOND).all].into();
        }
    });
    let [found] = at_places(&profile).try_into().unwrap();
    assert_eq!(found.found, "rank 0 spends 50.0 % of its time in MPI_Barrier; another rank 50.0 %");
}

#[test]
fn deadlock() {
    let circle = |first: u32, profile: &mut Profile| {
        for (rank, from) in [(first, first + 1), (first + 1, first)] {
            profile.ranks.iter_mut().find(|row| row.rank == Some(rank)).unwrap().open_calls.push(receive(from, 1));
        }
    };
    let one = with(job(4), |profile| circle(0, profile));
    assert_eq!(found(&one, "deadlock").unwrap(), "0 → 1 → 0");
    let two = with(one, |profile| circle(2, profile));
    assert_eq!(found(&two, "deadlock").unwrap(), "0 → 1 → 0, and another one");
    let chain = with(job(4), |profile| profile.ranks[0].open_calls.push(receive(1, 1)));
    assert_eq!(found(&chain, "deadlock"), None);
}

#[test]
fn incomplete() {
    let profile = with(job(1), |profile| {
        profile.complete = false;
        profile.incomplete_because = vec!["3 calls not counted".into(), "a rank may not be traced".into()];
    });
    assert_eq!(found(&profile, "incomplete").unwrap(), "3 calls not counted; a rank may not be traced");
}

#[test]
fn requests_never_completed() {
    let profile = |state| {
        with(job(2), |profile| {
            profile.ranks[1].state = state;
            profile.ranks[1].functions = vec![function("MPI_Finalize", 1, 1000).all].into();
            let requests = &mut profile.ranks[1].traffic.as_mut().unwrap().pending;
            requests.extend([pending("MPI_Irecv", Some(0), 1), pending("MPI_Isend", Some(0), 1)]);
            requests[0].site = Some("solve.c:7 in step".into());
        })
    };
    let said = found(&profile(RankState::Ended), "requests never completed").unwrap();
    assert_eq!(said, "1 ranks ended with 2 requests, such as MPI_Irecv at solve.c:7 in step of rank 1");
    assert_eq!(found(&profile(RankState::Running), "requests never completed"), None, "they may be completed yet");
    let without = with(profile(RankState::Ended), |profile| profile.ranks[1].traffic = None);
    assert_eq!(found(&without, "requests never completed"), None);
    let more_than_followed =
        with(profile(RankState::Ended), |profile| profile.ranks[1].losses.requests_not_followed = 1);
    assert_eq!(found(&more_than_followed, "requests never completed"), None, "they may have been completed");
    let killed = with(profile(RankState::Ended), |profile| profile.ranks[1].functions = Vec::new().into());
    assert_eq!(found(&killed, "requests never completed"), None, "it had no chance to");
}

#[test]
fn different_roots_and_ranks_that_are_waited_for() {
    let root = |root| {
        let arguments = CallArguments { root: Some(peer(root)), ..over_world() };
        OpenCallInfo { site: Some("solve.c:7 in step".into()), ..open("MPI_Bcast", arguments) }
    };
    let roots = with(job(2), |profile| {
        profile.ranks[0].open_calls.push(root(0));
        profile.ranks[1].open_calls.push(root(1));
    });
    let said = found(&roots, "different roots").unwrap();
    assert_eq!(said, "ranks 0, 1 are in MPI_Bcast with different roots");
    let waits = |open_ns| {
        with(job(3), |profile| {
            profile.ranks[0].open_calls.push(OpenCallInfo { open_ns, ..receive(2, 1) });
            profile.ranks[1].open_calls.push(OpenCallInfo { open_ns, ..receive(0, 1) });
        })
    };
    let name = "waited for";
    assert_eq!(found(&waits(10 * SECOND - 1), name), None, "that happens");
    let long = waits(10 * SECOND);
    let does = |change: fn(&mut mpiprobe_model::RankProfile)| {
        found(&with(long.clone(), |profile| change(&mut profile.ranks[2])), name).unwrap()
    };
    let said = "2 ranks have waited for rank 2 for 10.0 s at least, which";
    assert_eq!(does(|_| ()), format!("{said} is not in MPI"));
    assert_eq!(does(|rank| rank.stopped = true), format!("{said} is stopped"));
    assert_eq!(does(|rank| rank.state = RankState::Ended), format!("{said} has ended"));
    let windows = |rank: &mut mpiprobe_model::RankProfile| rank.open_calls.push(open("MPI_Win_lock", over_world()));
    assert_eq!(does(windows), format!("{said} is in MPI_Win_lock"));
    // It is no time to think of speed.
    let slow = with(long, |profile| {
        profile.totals.efficiency = Some(Efficiency { parallel: 0.5, load_balance: 0.5, communication: 1.0 });
        profile.ranks.iter_mut().take(2).for_each(|rank| rank.mpi_ns = 9 * SECOND);
        profile.functions.push(function("MPI_Recv", 100, SECOND / 10));
    });
    assert_eq!((found(&slow, "imbalance"), found(&slow, "mostly in MPI")), (None, None));
}

#[test]
fn aborted() {
    let profile = with(job(2), |profile| {
        let arguments = CallArguments { error_code: Some(7), ..over_world() };
        let call = OpenCallInfo {
            site: Some("solve.c:9 in check".into()),
            ended_inside: true,
            ..open("MPI_Abort", arguments)
        };
        profile.ranks[1].open_calls.push(call);
        profile.ranks.iter_mut().for_each(|rank| rank.state = RankState::Ended);
    });
    let said = found(&profile, "aborted").unwrap();
    assert_eq!(said, "rank 1 has called MPI_Abort with error code 7 at solve.c:9 in check");
}

#[test]
fn failed() {
    let of = |failures: &[(usize, Failure, u64)]| {
        with(job(4), |profile| {
            for &(rank, failure, ended_ago_ns) in failures {
                let rank = &mut profile.ranks[rank];
                (rank.state, rank.failure, rank.ended_ago_ns) = (RankState::Ended, Some(failure), Some(ended_ago_ns));
            }
        })
    };
    let (crash, term) = (Failure::Signal(11), Failure::Signal(15));
    assert_eq!(found(&of(&[(2, Failure::ExitStatus(3), 5)]), "failed").unwrap(), "rank 2 has ended with exit status 3");
    let killed = of(&[(0, term, 10), (1, term, 30), (3, crash, 30)]);
    assert_eq!(
        found(&killed, "failed").unwrap(),
        "rank 3 has ended with signal 11 (SIGSEGV); 2 others have failed after it"
    );
    assert_eq!(
        found(&of(&[(0, term, 10), (1, Failure::Signal(9), 30)]), "failed").unwrap(),
        "rank 1 has ended with signal 9 (SIGKILL); another one has failed after it"
    );
    assert_eq!(
        found(&of(&[(0, term, 10), (1, term, 10)]), "failed").unwrap(),
        "2 ranks have ended, one with signal 15 (SIGTERM); which was first is not known"
    );
    let inside = with(killed, |profile| {
        profile.ranks[3].open_calls.push(OpenCallInfo { ended_inside: true, ..receive(0, 7) });
    });
    assert_eq!(
        found(&inside, "failed").unwrap(),
        "rank 3 has ended with signal 11 (SIGSEGV), in MPI_Recv from 0 tag 7; 2 others have failed after it"
    );
    let aborted = with(inside, |profile| profile.ranks[0].open_calls.push(open("MPI_Abort", CallArguments::default())));
    assert_eq!(found(&aborted, "failed"), None, "it is said who has ended them");
}

#[test]
fn unusually_long_call() {
    let of = |open_ns, p99_ns: u64| {
        with(job(2), |profile| {
            profile.functions.push(function("MPI_Recv", 100, p99_ns));
            profile.ranks[1].open_calls.push(OpenCallInfo { open_ns, ..receive(0, 7) });
        })
    };
    let name = "unusually long call";
    let said = found(&of(2 * SECOND, 1000), name).unwrap();
    assert_eq!(said, "1 of 2 ranks, such as rank 1 in MPI_Recv from 0 tag 7 for 2.00 s");
    assert_eq!(found(&of(SECOND - 1, 1000), name), None, "nobody notices");
    assert_eq!(found(&of(2 * SECOND, SECOND / 2 + 1), name), None, "others take about as long");
    assert!(found(&of(2 * SECOND, SECOND / 2), name).is_some());
    let never_completed = with(of(2 * SECOND, 1), |profile| profile.functions.clear());
    assert!(found(&never_completed, name).is_some());
    let ended = with(of(2 * SECOND, 1), |profile| profile.ranks[1].state = RankState::Ended);
    assert_eq!(found(&ended, name), None);
    let inside = with(of(2 * SECOND, 1), |profile| profile.ranks[1].open_calls[0].ended_inside = true);
    assert_eq!(found(&inside, name), None);
}

#[test]
fn imbalance() {
    let of = |load_balance, number| {
        with(job(number), |profile| {
            profile.totals.efficiency = Some(Efficiency { parallel: load_balance, load_balance, communication: 1.0 });
            profile.ranks.iter_mut().skip(1).for_each(|rank| rank.mpi_ns = 6 * SECOND);
        })
    };
    let said = found(&of(0.55, 4), "imbalance").unwrap();
    assert_eq!(said, "load balance is 55.0 %; rank 0 computes most, 100.0 % of its time");
    assert_eq!(found(&of(0.8, 4), "imbalance"), None);
    assert_eq!(found(&of(0.5, 1), "imbalance"), None, "one rank is not out of balance");
    let short = with(of(0.5, 4), |profile| profile.observed_ns = SECOND - 1);
    assert_eq!(found(&short, "imbalance"), None);
    assert_eq!(found(&job(4), "imbalance"), None, "nobody computes");
}

#[test]
fn mostly_in_mpi() {
    let of = |share: f64| {
        with(job(2), |profile| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few seconds")]
            let in_mpi = (share * SECOND as f64 / 10.0) as u64;
            profile.ranks.iter_mut().for_each(|rank| rank.mpi_ns = in_mpi);
            profile.functions = vec![function("MPI_Send", 10, 10), function("MPI_Recv", 10, 20)];
        })
    };
    assert_eq!(found(&of(50.0), "mostly in MPI").unwrap(), "50.0 % of the time, most of it in MPI_Recv");
    let open = with(of(50.0), |profile| profile.functions[0].all.open_ns = 1000);
    assert!(found(&open, "mostly in MPI").unwrap().ends_with("MPI_Send"), "open calls count");
    assert_eq!(found(&of(49.9), "mostly in MPI"), None);
    let short = with(of(90.0), |profile| profile.observed_ns = SECOND - 1);
    assert_eq!(found(&short, "mostly in MPI"), None);
    let unseen = with(of(90.0), |profile| profile.ranks[1].unseen_ns = 10 * SECOND);
    assert_eq!(found(&unseen, "mostly in MPI"), None, "half of the time is not known");
    // Two of ten seconds are left for anything but starting and ending, and one of these is in MPI.
    let startup = |mpi_s| {
        with(of(0.0), |profile| {
            for rank in &mut profile.ranks {
                rank.functions = vec![function("MPI_Finalize", 1, 8 * SECOND).all].into();
                rank.mpi_ns = mpi_s * SECOND;
            }
            profile.functions.push(function("MPI_Finalize", 2, 8 * SECOND));
        })
    };
    assert_eq!(found(&startup(8), "mostly in MPI"), None);
    assert_eq!(found(&startup(9), "mostly in MPI").unwrap(), "50.0 % of the time, most of it in MPI_Recv");
}

#[test]
fn polling() {
    let of = |name, calls, wall_percent| {
        with(job(1), |profile| {
            let mut function = function(name, calls, 100);
            function.all.wall_percent = wall_percent;
            profile.functions.push(function);
        })
    };
    let said = found(&of("MPI_Iprobe", 100_000, 10.0), "polling").unwrap();
    assert_eq!(said, "MPI_Iprobe is called 10.0k/s and takes 10.0 % of the time");
    assert_eq!(found(&of("MPI_Iprobe", 99_999, 10.0), "polling"), None, "not so often");
    assert_eq!(found(&of("MPI_Iprobe", 100_000, 9.9), "polling"), None, "not so much of the time");
    assert_eq!(found(&of("MPI_Recv", 100_000, 90.0), "polling"), None, "it does not ask");
}

/// A function that has sent, or received, messages of this size.
fn moving(name: &'static str, messages: u64, bytes: u64, is_sent: bool) -> FunctionProfile {
    let mut function = function(name, messages, 100);
    let volume = Volume { messages, bytes: messages * bytes, ..Volume::default() };
    let (sent, received) = if is_sent { (volume, Volume::default()) } else { (Volume::default(), volume) };
    function.all.traffic = Some(FunctionTraffic { sent, received, ..FunctionTraffic::default() });
    function
}

#[test]
fn tiny_messages() {
    let of = |function| with(job(1), |profile| profile.functions.push(function));
    let name = "tiny messages";
    let said = found(&of(moving("MPI_Isend", 100_000, 256, true)), name).unwrap();
    assert_eq!(said, "MPI_Isend: 10.0k messages/s of 256 B on average");
    assert_eq!(found(&of(moving("MPI_Isend", 99_999, 8, true)), name), None, "not so many");
    assert_eq!(found(&of(moving("MPI_Isend", 100_000, 257, true)), name), None, "not so tiny");
    assert_eq!(found(&of(moving("MPI_Bcast", 100_000, 8, true)), name), None, "no message of two");
    assert_eq!(found(&of(function("MPI_Isend", 100_000, 1)), name), None, "nobody knows how large");
    assert_eq!(found(&of(moving("MPI_Isend", 0, 0, true)), name), None);
}

#[test]
fn tiny_io() {
    let of = |function| with(job(1), |profile| profile.functions.push(function));
    for is_sent in [true, false] {
        let said = found(&of(moving("MPI_File_write_at", 1000, 100, is_sent)), "tiny I/O").unwrap();
        assert_eq!(said, "MPI_File_write_at: 1,000 calls for 100 B on average");
    }
    assert_eq!(found(&of(moving("MPI_File_write_at", 999, 100, true)), "tiny I/O"), None, "not so many");
    assert_eq!(found(&of(moving("MPI_File_write_at", 1000, 4096, true)), "tiny I/O"), None, "not so tiny");
    assert_eq!(found(&of(moving("MPI_Send", 1000, 100, true)), "tiny I/O"), None, "no file");
}

#[test]
fn high_own_cost() {
    let of = |calls| with(job(1), |profile| profile.own_cost = OwnCost::new(1000.0, Some(500.0), calls, SECOND));
    assert_eq!(found(&of(50_000), "high own cost").unwrap(), "5.0 % of the job's time, 1.00 µs a call");
    assert_eq!(found(&of(49_999), "high own cost"), None);
}

/// A rank without a number is said to be unknown, not left out.
#[test]
fn ranks_without_a_number_are_named_all_the_same() {
    let profile = with(job(1), |profile| {
        profile.ranks[0].rank = None;
        profile.ranks[0].open_calls.push(OpenCallInfo { arguments: Some(over_world()), ..receive(0, 1) });
    });
    assert!(found(&profile, "unusually long call").unwrap().contains("rank ? in MPI_Recv"));
}
