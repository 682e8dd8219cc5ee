//! Pictures of small profiles, kept as text.

use mpiprobe_model::{
    Amounts, CommunicatorProfile, CommunicatorRow, Efficiency, FlowRow, GroupProfile, GroupRow, Partner, Profile,
    Rates, Spread,
    sample::{self, SECOND, function},
};

use mpiprobe_replay::Clocks;
use mpiprobe_trace::{HandMade, Span, call};

use super::*;
use crate::{Scaling, ScalingRun, page::html::Series, present::recording::Sums};

/// Four ranks after so many seconds: each sends to the next one over a communicator of this name.
fn ring(communicator: &str, seconds: u64) -> Profile {
    let mut ranks = sample::ranks(4);
    for rank in &mut ranks {
        let own = rank.rank.unwrap();
        let amounts = Amounts { calls: 10, time_ns: 1000, sent_bytes: 100 << (4 * own), ..Amounts::default() };
        let flow = FlowRow {
            function: "MPI_Send",
            started_by: None,
            communicator: Some(1),
            partner: Partner::Rank,
            peer: Some((own + 1) % 4),
            call_site: 1,
            site: None,
            amounts,
            completed: 0,
            pending_ns: 0,
            waited_ns: 0,
        };
        let row = CommunicatorRow {
            number: 1,
            id: Some(1),
            context: 0,
            rank: rank.rank,
            size: Some(4),
            remote_size: None,
            freed: false,
        };
        let traffic = rank.traffic.as_mut().unwrap();
        (traffic.flows, traffic.communicators) = (vec![flow].into(), vec![row]);
        (rank.wall_ns, rank.thread_wall_ns) = (seconds * SECOND, seconds * SECOND);
    }
    let mut profile = sample::profile(ranks);
    profile.observed_ns = seconds * SECOND;
    let mut send = function("MPI_Send", 111, 1000);
    send.all.durations = [vec![0; 10], vec![1, 100, 0, 10]].concat();
    profile.functions = vec![send];
    let group = |group, time_ns| GroupProfile {
        all: GroupRow {
            group,
            calls: 1,
            untimed_calls: 0,
            time_ns,
            rates: Rates::default(),
            traffic: None,
            wall_percent: 0.0,
            mpi_percent: 0.0,
        },
        time_over_ranks_ns: Spread::default(),
    };
    profile.groups =
        vec![group("collective", seconds * SECOND), group("point-to-point", seconds * seconds * SECOND / 2)];
    profile.traffic.as_mut().unwrap().communicators = vec![CommunicatorProfile {
        id: 1,
        name: communicator.into(),
        is_named: true,
        job: None,
        context: 0,
        size: Some(4),
        remote_size: None,
        members: None,
        remote_members: None,
        parent: None,
        made_by: None,
        ranks: 4,
        freed: false,
        amounts: Amounts::default(),
        functions: Vec::new(),
    }];
    profile
}

fn series() -> Series {
    let mut series = Series::new(4, false);
    (1..=4).for_each(|second| series.add(&Sums::of(&ring("world", second))));
    series
}

#[test]
fn a_matrix() {
    insta::assert_snapshot!(matrix(&ring("world", 4), Measure::Bytes, &PlotOptions::default()).unwrap());
    let logarithmic =
        PlotOptions { log: true, ranks: Some(0..=2), communicator: Some("world".into()), ..PlotOptions::default() };
    insta::assert_snapshot!(matrix(&ring("world", 4), Measure::Time, &logarithmic).unwrap());
}

#[test]
fn a_timeline() {
    insta::assert_snapshot!(timeline(&ring("world", 4), &series(), &PlotOptions::default()).unwrap());
}

#[test]
fn a_histogram() {
    insta::assert_snapshot!(histogram(&ring("world", 4), None, &PlotOptions::default()).unwrap());
    let logarithmic = PlotOptions { log: true, width: 500, height: 300, ..PlotOptions::default() };
    insta::assert_snapshot!(histogram(&ring("world", 4), Some("MPI_Send"), &logarithmic).unwrap());
}

fn run(ranks: usize, useful_ns: f64, load_balance: f64, communication: f64) -> ScalingRun {
    let efficiency = Efficiency { parallel: load_balance * communication, load_balance, communication };
    ScalingRun { ranks, elapsed_ns: 1e9, efficiency: Some(efficiency), useful_ns: Some(useful_ns) }
}

#[test]
fn scaling_of_runs() {
    let runs = [run(8, 120.0, 0.8, 0.7), run(2, 100.0, 0.98, 0.95), run(4, 100.0, 0.9, 0.9), run(4, 110.0, 0.92, 0.88)];
    insta::assert_snapshot!(scaling(&Scaling::of(&runs, false), &PlotOptions::default()).unwrap());
}

#[test]
fn useful_time_is_what_is_outside_mpi() {
    let mut profile = ring("world", 4);
    for rank in &mut profile.ranks {
        rank.mpi_ns = SECOND;
    }
    assert_eq!(ScalingRun::of(&profile).useful_ns, Some(12e9));
}

#[test]
fn what_is_not_there_cannot_be_plotted() {
    let ring = ring("world", 4);
    let options = PlotOptions::default();
    let over = |name: &str| PlotOptions { communicator: Some(name.into()), ..options.clone() };
    assert_eq!(matrix(&ring, Measure::Bytes, &over("row")), Err(PlotError::NothingSent));
    let elsewhere = PlotOptions { ranks: Some(7..=9), ..options.clone() };
    assert_eq!(matrix(&ring, Measure::Bytes, &elsewhere), Err(PlotError::NothingSent));
    let untold = Profile { traffic: None, ..ring.clone() };
    assert_eq!(matrix(&untold, Measure::Bytes, &options), Err(PlotError::NoTraffic));
    assert_eq!(timeline(&ring, &Series::new(1, false), &options), Err(PlotError::OneMoment));
    assert_eq!(histogram(&ring, Some("MPI_Recv"), &options), Err(PlotError::NoFunction("MPI_Recv".into())));
    assert_eq!(histogram(&sample::profile(Vec::new()), None, &options), Err(PlotError::NoCalls));
    assert_eq!(scaling(&Scaling::of(&[run(4, 1.0, 1.0, 1.0); 2], false), &options), Err(PlotError::OneSize(4)));
    assert_eq!(scaling(&Scaling::of(&[], false), &options), Err(PlotError::OneSize(0)));
}

/// Two ranks that send to each other, and wait.
fn pair() -> HandMade {
    let mut made = HandMade::of_ranks(2);
    for rank in 0..2 {
        made.add(rank, call("MPI_Init", 1_000_000, 1_400_000));
    }
    made.add(0, call("MPI_Send", 1_600_000, 1_700_000).to(1, 7, 4096));
    made.add(1, call("MPI_Recv", 1_450_000, 1_720_000).from(0, 7, 4096));
    let posted = call("MPI_Irecv", 1_710_000, 1_715_000).from(1, 8, 64).posts(5);
    made.add(0, posted.clone());
    made.add(0, call("MPI_Wait", 1_730_000, 2_050_000).completes(&posted));
    made.add(1, call("MPI_Ssend", 2_000_000, 2_060_000).to(0, 8, 64));
    made.add(0, call("MPI_Allreduce", 2_100_000, 2_200_000).moves(8, 8));
    made.add(1, call("MPI_Allreduce", 2_150_000, 2_201_000).moves(8, 8));
    made
}

#[test]
fn calls_of_a_trace() {
    let (svg, is_whole) = calls(&pair(), &Clocks::same(), Span::ALL, &PlotOptions::default()).unwrap();
    assert!(is_whole);
    insta::assert_snapshot!(svg);
    let span = Span { from_ns: 1_500_000, until_ns: 1_800_000 };
    let one = PlotOptions { ranks: Some(1..=1), width: 500, height: 300, ..PlotOptions::default() };
    insta::assert_snapshot!(calls(&pair(), &Clocks::same(), span, &one).unwrap().0);
}

/// Many ranks share lanes, many messages are counted, and the picture has a size that can be opened.
#[test]
fn calls_of_many_ranks() {
    let made = HandMade::halo(600, 5);
    let (svg, _) = calls(&made, &Clocks::same(), Span::ALL, &PlotOptions::default()).unwrap();
    assert!(svg.contains("8 threads in a lane"), "{}", &svg[..600]);
    assert!(svg.contains(" messages not drawn"));
    assert!(svg.len() < 4 << 20, "{} bytes", svg.len());
}

/// Each message is an arrow from its sender to its receiver: a line and a head.
#[test]
fn messages_of_a_trace_are_arrows() {
    let (svg, _) = calls(&pair(), &Clocks::same(), Span::ALL, &PlotOptions::default()).unwrap();
    let is_line = |line: &&str| line.starts_with("<polyline") && line.contains("opacity=\"0.75\"");
    assert_eq!((svg.lines().filter(is_line).count(), svg.matches("<polygon").count()), (2, 2), "{svg}");
    // Of one rank alone there is none.
    let one = PlotOptions { ranks: Some(0..=0), ..PlotOptions::default() };
    assert!(!calls(&pair(), &Clocks::same(), Span::ALL, &one).unwrap().0.contains("<polygon"));
}

#[test]
fn of_a_trace_only_what_is_there_can_be_plotted() {
    let nothing = |made: &HandMade, span: Span, options: &PlotOptions| {
        matches!(calls(made, &Clocks::same(), span, options), Err(CallsError::Plot(PlotError::NothingThere)))
    };
    let options = PlotOptions::default();
    assert!(nothing(&HandMade::default(), Span::ALL, &options));
    assert!(nothing(&HandMade::of_ranks(2), Span::ALL, &options));
    assert!(nothing(&pair(), Span::ALL, &PlotOptions { ranks: Some(5..=9), ..options.clone() }));
    assert!(nothing(&pair(), Span { from_ns: 1 << 40, until_ns: 1 << 41 }, &options));
    // Times that no job can have, at any size.
    for (width, height) in [(200, 150), (800, 560), (3000, 200)] {
        let mut made = HandMade::of_ranks(2);
        made.add(0, call("MPI_Send", 0, u64::MAX).to(1, 0, 1));
        made.add(1, call("MPI_Recv", u64::MAX, 5).from(0, 0, 1));
        assert!(calls(&made, &Clocks::same(), Span::ALL, &PlotOptions { width, height, ..options.clone() }).is_ok());
    }
}

#[test]
fn names_of_others_are_text() {
    let hostile = "</text><script>alert(1)</script>&\"'";
    let options = PlotOptions { communicator: Some(hostile.into()), ..PlotOptions::default() };
    let svg = matrix(&ring(hostile, 4), Measure::Bytes, &options).unwrap();
    assert!(!svg.contains("<script"), "{svg}");
    assert!(svg.contains("&lt;script"), "{svg}");
}
