//! Comparisons of runs whose times are made up: with the noise that jobs have, and the same at each run of the tests.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times that are made up are small and above 0"
)]

use mpiprobe_model::{EndReason, Profile, sample};

use crate::present::TextOptions;

use super::{
    Basis, Comparison, Condition, Method, Options, Refused, Run, Section, Verdict, markdown, statistics::Random, text,
};

const FUNCTIONS: [&str; 10] = [
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather",
    "MPI_Irecv",
    "MPI_Isend",
    "MPI_Recv",
    "MPI_Send",
    "MPI_Waitall",
];
const RANKS: u32 = 8;
const CALLS: u64 = 1000;

/// Near enough to normally distributed, of standard deviation 1.
fn normal(random: &mut Random) -> f64 {
    let uniform = |random: &mut Random| (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

/// Noise of a run: the machine as a whole, one rank in fifty that was disturbed, and each function by itself, as much as all others.
fn run(random: &mut Random, slow: impl Fn(u32, &str) -> f64) -> Profile {
    noisy_run(random, |_| 0.01, slow)
}

/// As real jobs have it: times of some functions vary by half a per cent, those of others by half.
fn uneven(random: &mut Random, slow: impl Fn(u32, &str) -> f64) -> Run {
    let noise = |place: usize| 0.005 * 1.7_f64.powi(i32::try_from(FUNCTIONS.len() - place).unwrap_or(0) - 1);
    Run::new("uneven.rec", &noisy_run(random, noise, slow))
}

/// `noise`: of a function, by its place.
fn noisy_run(random: &mut Random, noise: impl Fn(usize) -> f64, slow: impl Fn(u32, &str) -> f64) -> Profile {
    let machine = 1.0 + 0.005 * normal(random);
    let mut ranks = sample::ranks(RANKS);
    let mut all = vec![0; FUNCTIONS.len()];
    for rank in &mut ranks {
        let number = rank.rank.unwrap();
        let disturbed = if random.next().is_multiple_of(50) { 1.03 } else { 1.0 };
        for (place, name) in FUNCTIONS.into_iter().enumerate() {
            let usual_ns = 20_000.0 * (1 + place + number as usize) as f64;
            let factor = (machine * disturbed * (1.0 + noise(place) * normal(random)) * slow(number, name)).max(0.0);
            let each_ns = (usual_ns * factor) as u64;
            rank.functions.push(sample::function(name, CALLS, each_ns).all);
            rank.mpi_ns += CALLS * each_ns;
            all[place] += CALLS * each_ns;
        }
    }
    let mut profile = sample::profile(ranks);
    profile.end = Some(EndReason::TargetsEnded);
    for (name, time_ns) in FUNCTIONS.into_iter().zip(all) {
        let calls = CALLS * u64::from(RANKS);
        profile.functions.push(sample::function(name, calls, time_ns / calls));
    }
    profile
}

fn runs(random: &mut Random, number: usize, slow: impl Fn(u32, &str) -> f64) -> Vec<Run> {
    (0..number).map(|place| Run::new(&format!("run{place}.rec"), &run(random, &slow))).collect()
}

fn compare(before: &[Run], after: &[Run]) -> Comparison {
    Comparison::of(before, after, &Options::default()).unwrap()
}

#[test]
fn five_per_cent_in_one_function_of_one_rank_are_found_in_five_runs_a_side() {
    let slow = |rank, name: &str| if rank == 3 && name == "MPI_Allreduce" { 1.05 } else { 1.0 };
    let mut found = 0;
    for seed in 1..=40 {
        let random = &mut Random(seed * 7919);
        let comparison = compare(&runs(random, 5, |_, _| 1.0), &runs(random, 5, slow));
        assert_eq!(comparison.method, Method::Student);
        let planted = comparison.rows.iter().find(|row| {
            row.subject.section == Section::FunctionInRanks
                && row.subject.name == "MPI_Allreduce"
                && row.subject.ranks.as_deref() == Some("3")
        });
        found += u32::from(planted.unwrap().verdict == Verdict::Slower);
        let others = comparison.findings.iter().filter(|row| row.subject.name != "MPI_Allreduce");
        assert_eq!(others.count(), 0, "seed {seed}");
    }
    assert!(found >= 30, "found in {found} of 40");
}

#[test]
fn fifty_comparisons_of_the_same_with_the_same_find_three_things_at_most() {
    for (number, seed) in [(5, 17), (3, 29), (8, 31)] {
        let random = &mut Random(seed);
        let findings: usize = (0..50)
            .map(|_| compare(&runs(random, number, |_, _| 1.0), &runs(random, number, |_, _| 1.0)).findings.len())
            .sum();
        assert!(findings <= 3, "{findings} in fifty comparisons of {number} runs a side");
    }
}

/// The one that is slower is not lost among those that vary more.
#[test]
fn what_is_slower_is_found_among_functions_that_vary_much() {
    let slow = |rank, name: &str| if rank == 3 && name == "MPI_Waitall" { 1.05 } else { 1.0 };
    for number in [5, 8] {
        let (mut found, mut by_chance) = (0, 0);
        for seed in 1..=40 {
            let random = &mut Random(seed * 7907);
            let side = |random: &mut Random, slow: &dyn Fn(u32, &str) -> f64| -> Vec<Run> {
                (0..number).map(|_| uneven(random, slow)).collect()
            };
            let before = side(random, &|_, _| 1.0);
            let comparison = compare(&before, &side(random, &slow));
            let is_it = |row: &&super::Row| row.subject.to_string() == "MPI_Waitall in rank 3";
            found += u32::from(comparison.findings.iter().any(|row| is_it(&row)));
            by_chance += compare(&before, &side(random, &|_, _| 1.0)).findings.len();
        }
        assert!(found >= 30, "found in {found} of 40 comparisons of {number} runs a side");
        assert!(by_chance <= 3, "{by_chance} findings by chance in 40 comparisons of {number} runs a side");
    }
}

#[test]
fn a_run_with_itself_is_no_difference() {
    let one = runs(&mut Random(5), 1, |_, _| 1.0);
    let comparison = compare(&one, &one);
    assert!(comparison.is_same() && comparison.findings.is_empty());
    assert!(text(&TextOptions::default(), &comparison).contains("No difference: every figure is the same."));
    let several = runs(&mut Random(5), 5, |_, _| 1.0);
    let comparison = compare(&several, &several);
    assert!(comparison.findings.is_empty());
    assert!(text(&TextOptions::default(), &comparison).contains("No difference that could not be chance."));
}

#[test]
fn few_runs_find_what_is_large() {
    let random = &mut Random(11);
    let comparison =
        compare(&runs(random, 3, |_, _| 1.0), &runs(random, 3, |_, name| if name == "MPI_Send" { 2.0 } else { 1.0 }));
    assert_eq!(comparison.method, Method::Student);
    let first = &comparison.findings.first().unwrap().subject;
    assert!(
        comparison
            .findings
            .iter()
            .any(|row| row.subject.section == Section::Function && row.subject.name == "MPI_Send"),
        "{first}"
    );
    assert!(
        comparison.findings.iter().all(|row| row.subject.name == "MPI_Send" || !row.subject.name.starts_with("MPI_"))
    );
}

/// A recording of so many seconds in which a function takes so much of each, ns.
fn moments(random: &mut Random, share_ns: f64) -> Run {
    let (mut profiles, mut time_ns) = (Vec::new(), 0);
    for second in 1..=12 {
        time_ns += (share_ns * (1.0 + 0.03 * normal(random))) as u64;
        let mut ranks = sample::ranks(1);
        ranks[0].wall_ns = second * sample::SECOND;
        ranks[0].thread_wall_ns = ranks[0].wall_ns;
        ranks[0].mpi_ns = time_ns;
        let mut profile = sample::profile(ranks);
        profile.functions = vec![sample::function("MPI_Recv", second, time_ns / second)];
        profiles.push(profile);
    }
    Run::new("one.rec", profiles.last().unwrap()).with_moments(profiles, false)
}

#[test]
fn one_run_a_side_is_compared_by_its_moments() {
    let random = &mut Random(3);
    let comparison = compare(&[moments(random, 2e8)], &[moments(random, 2.6e8)]);
    assert_eq!((comparison.method, &comparison.basis), (Method::Moments, &Basis::Time));
    assert!(comparison.notes.iter().any(|note| note.starts_with("one run a side")), "{:?}", comparison.notes);
    let found = comparison.findings.iter().find(|row| row.subject.name == "MPI_Recv").unwrap();
    let (low, high) = found.change_interval_percent.unwrap();
    assert!(low < 30.0 && 30.0 < high && low > 20.0, "{low} {high}");
    let comparison = compare(&[moments(random, 2e8)], &[moments(random, 2e8)]);
    assert!(comparison.findings.is_empty());
    // How long whole runs take, no part of them tells.
    let mut longer = moments(random, 2e8);
    longer.amounts.elapsed_ns *= 1.05;
    let elapsed = longer.amounts.by_subject.iter_mut().find(|(subject, _)| subject.name == "elapsed").unwrap();
    elapsed.1.time_ns *= 1.05;
    let by_run = Options { basis: Some(Basis::Run), ..Options::default() };
    let comparison = Comparison::of(&[moments(random, 2e8)], &[longer], &by_run).unwrap();
    let row = comparison.rows.iter().find(|row| row.subject.name == "elapsed").unwrap();
    assert_eq!((comparison.method, row.verdict, row.probability), (Method::Moments, Verdict::Unknown, None));
}

#[test]
fn without_moments_one_run_a_side_says_nothing_about_chance() {
    let random = &mut Random(4);
    let comparison = compare(&runs(random, 1, |_, _| 1.0), &runs(random, 1, |_, _| 1.5));
    assert_eq!((comparison.method, comparison.findings.len()), (Method::None, 0));
    assert!(comparison.rows.iter().any(|row| row.verdict == Verdict::Unknown));
}

#[test]
fn calls_and_iterations_make_longer_runs_alike() {
    let random = &mut Random(8);
    let twice = |random: &mut Random| {
        let mut profile = run(random, |_, _| 2.0);
        for function in profile.ranks.iter_mut().flat_map(|rank| &mut rank.functions) {
            function.calls *= 2;
        }
        profile.functions.iter_mut().for_each(|function| function.all.calls *= 2);
        Run::new("twice.rec", &profile)
    };
    let before = runs(random, 5, |_, _| 1.0);
    let after: Vec<Run> = (0..5).map(|_| twice(random)).collect();
    let by = |basis: &str| {
        let options = Options { basis: Some(basis.parse().unwrap()), ..Options::default() };
        Comparison::of(&before, &after, &options).unwrap()
    };
    let of_functions = |comparison: &Comparison| {
        comparison.findings.iter().filter(|row| row.subject.section == Section::Function).count()
    };
    assert_eq!(of_functions(&by("run")), FUNCTIONS.len());
    assert_eq!(of_functions(&by("call")), 0);
    assert_eq!(of_functions(&by("iteration=MPI_Barrier")), 0);
    let none = Options { basis: Some("iteration=step".parse().unwrap()), ..Options::default() };
    assert!(matches!(Comparison::of(&before, &after, &none), Err(Refused::Iterations { .. })));
    assert!("iteration=".parse::<Basis>().is_err() && "rank".parse::<Basis>().is_err());
}

#[test]
fn different_programs_are_refused_unless_they_are_wanted() {
    let random = &mut Random(2);
    let before = runs(random, 1, |_, _| 1.0);
    let mut other = run(random, |_, _| 1.0);
    for rank in &mut other.ranks {
        rank.executable = "/bin/mesh".into();
    }
    other.functions.remove(0);
    let after = [Run::new("mesh.rec", &other)];
    let refused = Comparison::of(&before, &after, &Options::default()).unwrap_err().to_string();
    assert!(refused.contains("solve and mesh; MPI_Allreduce called before only; --anyway"), "{refused}");
    let comparison = Comparison::of(&before, &after, &Options { anyway: true, ..Options::default() }).unwrap();
    assert!(comparison.notes.iter().any(|note| note.starts_with("different programs")));
    assert_eq!(Comparison::of(&[], &after, &Options::default()).unwrap_err(), Refused::OneSide);
}

#[test]
fn more_ranks_make_a_scaling_table() {
    let of = |ranks: u32, wall_ns: u64, mpi_ns: u64| {
        let mut profile = sample::profile(sample::ranks(ranks));
        for rank in &mut profile.ranks {
            (rank.wall_ns, rank.thread_wall_ns, rank.mpi_ns) = (wall_ns, wall_ns, mpi_ns);
        }
        let useful = (wall_ns - mpi_ns) as f64;
        profile.totals.efficiency = mpiprobe_model::Efficiency::of((0..ranks).map(|_| (useful, wall_ns as f64)));
        Run::new(&format!("{ranks}.rec"), &profile)
    };
    // Twice as many ranks compute 4.4 s in all instead of 4 s, and take 1.5 s of 2.5 s for it.
    let comparison = compare(&[of(2, 2_500_000_000, 500_000_000)], &[of(4, 1_500_000_000, 400_000_000)]);
    let scaling = comparison.scaling.as_ref().unwrap();
    let [few, many] = scaling.rows.as_slice() else { panic!("{scaling:?}") };
    assert_eq!((few.ranks, few.runs, few.speedup, few.computation), (2, 1, 1.0, Some(1.0)));
    let near = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-9;
    assert!(near(Some(many.speedup), 2.5 / 1.5) && near(many.computation, 4.0 / 4.4));
    assert!(near(many.parallel, 1.1 / 1.5) && near(many.global, 1.1 / 1.5 * 4.0 / 4.4));
    assert!(comparison.rows.iter().all(|row| row.subject.ranks.is_none()));
    assert!(text(&TextOptions::default(), &comparison).contains("computation scaling"));
    let weak = Options { is_weak: true, ..Options::default() };
    let weak =
        Comparison::of(&[of(2, 2_500_000_000, 500_000_000)], &[of(4, 2_500_000_000, 500_000_000)], &weak).unwrap();
    assert!(near(weak.scaling.unwrap().rows[1].computation, 1.0));
}

#[test]
fn conditions_hold_for_what_is_no_chance() {
    let random = &mut Random(21);
    let comparison = compare(
        &runs(random, 5, |_, _| 1.0),
        &runs(random, 5, |rank, name| if rank == 2 && name == "MPI_Bcast" { 1.5 } else { 1.0 }),
    );
    let held = |condition: &str| condition.parse::<Condition>().unwrap().held(&comparison).map(|held| held.len());
    assert_eq!(held("Bcast in rank 2 > +10 %"), Ok(1));
    assert_eq!(held("Bcast > +3 %"), Ok(1), "a twentieth of all");
    assert_eq!(held("Bcast in rank 2 > +60 %"), Ok(0));
    assert_eq!(held("MPI_* < 0 %"), Ok(0), "small changes are chance");
    assert!(held("Scan > 1 %").is_err());
    let held = "Bcast in rank 2 > +10 %".parse::<Condition>().unwrap().held(&comparison).unwrap();
    assert!(held[0].to_string().starts_with("--fail-if 'Bcast in rank 2 > +10 %': MPI_Bcast in rank 2 changed by +"));
}

#[test]
fn names_of_others_steer_neither_terminals_nor_pages() {
    let random = &mut Random(6);
    let mut profile = run(random, |_, _| 1.0);
    profile.ranks[0].executable = "/bin/a\u{1b}[2J|<script>".into();
    let before = [Run::new("a\u{1b}[2J|<script>.rec", &profile)];
    let comparison =
        Comparison::of(&before, &runs(random, 1, |_, _| 1.0), &Options { anyway: true, ..Options::default() }).unwrap();
    let (text, page) = (text(&TextOptions::default(), &comparison), markdown(&TextOptions::default(), &comparison));
    assert!(!text.contains('\u{1b}') && !page.contains('\u{1b}'));
    assert!(!page.contains("<script>") && page.contains("\\|&lt;script>"), "{page}");
}

#[test]
fn the_json_form_has_its_name() {
    let one = runs(&mut Random(5), 1, |_, _| 1.0);
    let json = serde_json::to_value(compare(&one, &one)).unwrap();
    assert_eq!(json["schema"], "mpiprobe.comparison/1");
    assert_eq!(json["rows"][0]["verdict"], "same");
}
