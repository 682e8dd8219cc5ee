//! Programs that hang, under every MPI and compiled in several ways: what `mpiprobe hang` says of them that comes afterwards, and what an
//! observation says that was there from the start. And of the same programs that go on, that nothing is said.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    Job, Mpi, Profiler, Program, Requirement,
    hang::{
        CASES, Case, Cause, Judgement, THAT_GO_ON, causes, causes_found, is_there, judge, misplaced, misplaced_in,
        parsed,
    },
    program::Language,
};

/// What compilers leave of the source, and how they make frames; programs take turns.
const FORMS: [(&str, &[&str]); 4] = [
    ("-g -O2", &["-fno-optimize-sibling-calls"]),
    ("-O0 without -g", &["-O0", "-g0"]),
    ("frame pointers", &["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]),
    ("stripped", &["-g0", "-s", "-fno-optimize-sibling-calls"]),
];
/// Those whose requests and windows are known.
const MPIS: [Mpi; 6] = [Mpi::OpenMpi, Mpi::Mpich, Mpi::OpenMpi5, Mpi::Mpich5, Mpi::Mpich5Abi, Mpi::Intel];
/// How long a program may take until it hangs.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often an answer is asked for of a program that hangs, before the last one counts: of ranks that had no processor it is not known
/// whether they go on.
const ANSWERS: u32 = 5;
/// How long calls have been open by then of which an observation should know what they wait for, ns; where ranks wait for one that
/// does something else, that is told after ten seconds.
const OPEN_NS: u64 = 3_000_000_000;
const LONG_NS: u64 = 11_000_000_000;
/// How long an observation may take after that to look at stacks, and to look again.
const STACKS: Duration = Duration::from_secs(20);

/// Where the programs hold their ranks before they hang.
const GATE: &str = "1";

/// How a job is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Afterwards,
    FromTheStart,
}

impl Way {
    const ALL: [Self; 2] = [Self::Afterwards, Self::FromTheStart];

    const fn name(self) -> &'static str {
        match self {
            Self::Afterwards => "afterwards",
            Self::FromTheStart => "from the start",
        }
    }
}

/// What came of one look at one program.
#[derive(Debug)]
struct Outcome {
    judgement: Judgement,
    misplaced: Vec<String>,
}

#[derive(Debug, Default)]
struct Sums {
    told: u32,
    not_known: u32,
    wrong: u32,
    misplaced: u32,
    failed: u32,
}

/// `soak hang [NAME…]`: programs or MPIs whose names contain one of these; all without names.
pub fn main(names: &[String]) -> ExitCode {
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part.as_str()));
    let mut sums: BTreeMap<Way, Sums> = BTreeMap::new();
    let mut failed = false;
    for (place, mpi) in MPIS.into_iter().enumerate() {
        for (number, case) in CASES.iter().enumerate() {
            let Some((form, options)) = FORMS.iter().cycle().nth(number + place) else { continue };
            let (program, form) = compiled(case.program, form, options);
            let title = format!("{}::{} ({form})", mpi.id(), case.title());
            let needs = [Requirement::Bpf, Requirement::Mpi(mpi), Requirement::Language(mpi, case.language())];
            let is_there =
                case.language() == Language::C || mpi.compiler(case.language()).is_none_or(|it| it != "no compiler");
            if !is_chosen(&title) || !is_there || needs.iter().any(|need| need.missing().is_some()) {
                continue;
            }
            for way in Way::ALL {
                let sums = sums.entry(way).or_default();
                match look(mpi, program, case, way) {
                    Ok(outcome) => {
                        println!("{title}, {}: {}{}", way.name(), outcome.judgement, places(&outcome.misplaced));
                        sums.add(&outcome);
                    }
                    Err(error) => {
                        println!("{title}, {}: FAILED: {error}", way.name());
                        sums.failed += 1;
                    }
                }
            }
        }
        for (program, argument, ranks) in THAT_GO_ON {
            let title = format!("{}::{} {argument} that goes on", mpi.id(), program.name);
            if is_chosen(&title) && Requirement::Mpi(mpi).missing().is_none() {
                let alarms = goes_on(mpi, program, argument, ranks);
                println!(
                    "{title}: {}",
                    alarms.as_ref().map_or_else(ToString::to_string, |alarms| match alarms.as_slice() {
                        [] => "no alarm".to_owned(),
                        alarms => format!("FALSE ALARM: {alarms:?}"),
                    })
                );
                failed |= alarms.map_or(true, |alarms| !alarms.is_empty());
            }
        }
    }
    for (way, Sums { told, not_known, wrong, misplaced, failed: errors }) in &sums {
        println!(
            "{}: cause told {told}, not known {not_known}, wrong {wrong}; function or place wrong in {misplaced}; {errors} could not be tried",
            way.name()
        );
        failed |= *wrong > 0 || *misplaced > 0 || *errors > 0 || *told < 9 * *not_known;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Sums {
    fn add(&mut self, outcome: &Outcome) {
        match outcome.judgement {
            Judgement::Told => self.told += 1,
            Judgement::NotKnown => self.not_known += 1,
            Judgement::Wrong(_) => self.wrong += 1,
        }
        self.misplaced += u32::from(!outcome.misplaced.is_empty());
    }
}

fn places(misplaced: &[String]) -> String {
    if misplaced.is_empty() { String::new() } else { format!(", PLACES WRONG: {}", misplaced.join("; ")) }
}

/// With these options, if it is compiled.
fn compiled(program: Program, form: &'static str, options: &'static [&'static str]) -> (Program, &'static str) {
    match program.language {
        Language::Python => (program, "as it is"),
        _ => (program.compiled(options), form),
    }
}

fn job(mpi: Mpi, program: Program, ranks: u32, argument: &str) -> crate::job::JobBuilder {
    let arguments = Some(argument).filter(|argument| !argument.is_empty());
    Job::builder(mpi, program).ranks(ranks).args(arguments).own_name()
}

type Error = Box<dyn std::error::Error>;

fn look(mpi: Mpi, program: Program, case: &Case, way: Way) -> Result<Outcome, Error> {
    let builder = job(mpi, program, case.ranks(), case.name);
    match way {
        Way::Afterwards => afterwards(&builder.spawn()?, program, case),
        Way::FromTheStart => {
            // However busy the machine is, nobody hangs before all are observed.
            let builder = builder.gates(&[GATE]);
            let profiler = Profiler::waiting(["--json", "--traffic", "--interval", "1", "--pid-of", builder.name()])?;
            from_the_start(profiler, &builder.spawn()?, program, case)
        }
    }
}

fn afterwards(job: &Job, program: Program, case: &Case) -> Result<Outcome, Error> {
    let until = Instant::now() + PATIENCE;
    let mut answers = 0;
    loop {
        let ended = Profiler::start(["hang", "--json", "--pid-of", job.called()])?.wait()?;
        if ended.status.code() == Some(1) {
            if Instant::now() < until {
                continue;
            }
            return Err(ended.printed().into());
        }
        let answer = parsed(&ended).map_err(|error| format!("{error:?}"))?;
        let hangs = is_there(case, &answer);
        let outcome =
            Outcome { judgement: judge(case, &causes(&answer)), misplaced: misplaced(case, program, &answer) };
        answers += u32::from(hangs);
        let is_wrong = hangs && matches!(outcome.judgement, Judgement::Wrong(_));
        let is_good = outcome.judgement == Judgement::Told && outcome.misplaced.is_empty();
        if is_wrong || hangs && is_good || answers >= ANSWERS {
            return Ok(outcome);
        }
        if Instant::now() >= until {
            return Err(format!("it does not hang as it should: {answer}").into());
        }
    }
}

fn from_the_start(mut profiler: Profiler, job: &Job, program: Program, case: &Case) -> Result<Outcome, Error> {
    let long_ns = if matches!(case.cause, Cause::Ranks(_)) { LONG_NS } else { OPEN_NS };
    let until = Instant::now() + PATIENCE;
    let (mut hangs_since, mut are_held) = (None, true);
    for nth in 0.. {
        let profile: Value = serde_json::from_str(&profiler.wait_for_output(nth)?)?;
        let seen = profile.get("ranks").and_then(Value::as_array).map_or(0, Vec::len);
        if seen >= case.ranks() as usize && std::mem::take(&mut are_held) {
            job.open_gate(GATE)?;
        }
        let judgement = judge(case, &causes_found(&profile));
        if let Judgement::Wrong(_) = judgement {
            return Ok(Outcome { judgement, misplaced: Vec::new() });
        }
        if let Some(misplaced) = misplaced_in(case, program, &profile, long_ns) {
            let since = *hangs_since.get_or_insert_with(Instant::now);
            if judgement == Judgement::Told && misplaced.is_empty() || since.elapsed() >= STACKS {
                return Ok(Outcome { judgement, misplaced });
            }
        }
        if Instant::now() >= until {
            return Err(format!("it does not hang as it should: {profile}").into());
        }
    }
    Err("no more profiles".into())
}

/// Alarms of a job that goes on: of ten answers, and of ten seconds of an observation.
fn goes_on(mpi: Mpi, program: Program, argument: &str, ranks: u32) -> Result<Vec<String>, Error> {
    const TIMES: usize = 10;
    let builder = job(mpi, program, ranks, argument);
    let mut profiler = Profiler::waiting(["--json", "--traffic", "--interval", "1", "--pid-of", builder.name()])?;
    let job = builder.spawn()?;
    let mut alarms = Vec::new();
    for nth in 0..TIMES {
        let profile: Value = serde_json::from_str(&profiler.wait_for_output(nth)?)?;
        let found = causes_found(&profile).into_iter();
        // Whoever is in MPI_Barrier does wait for those who play.
        alarms.extend(found.filter(|(kind, _)| kind != "waited_for").map(|cause| format!("observation: {cause:?}")));
    }
    drop(profiler);
    for _ in 0..TIMES {
        let ended = Profiler::start(["hang", "--json", "--pid-of", job.called()])?.wait()?;
        let answer = parsed(&ended).map_err(|error| format!("{error:?}"))?;
        alarms.extend(causes(&answer).into_iter().map(|cause| format!("hang: {cause:?}")));
    }
    Ok(alarms)
}
