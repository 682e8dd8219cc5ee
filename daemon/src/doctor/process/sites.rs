//! How many functions of the library are cheap to probe.

use std::collections::BTreeMap;

use mpiprobe_functions::{FunctionId, FunctionSet};
use mpiprobe_model::Check;
use mpiprobe_plan::{Census, ElfError, Library, Plan, plan};
use serde_json::{Value, json};

/// In one line so many slow functions are named.
const MOST_NAMED: usize = 24;

/// Sites of the functions of a set.
pub(super) fn plan_of(library: &Library<'_>, wanted: &FunctionSet) -> Result<Plan<FunctionId>, ElfError> {
    plan(
        library,
        |name| mpiprobe_functions::by_name(name).filter(|id| wanted.contains(*id)),
        |id: &FunctionId| id.function().arguments.len(),
    )
}

/// Of the functions that are probed unless asked otherwise.
pub(super) fn of_default(census: &Census) -> Check {
    let check = if census.total() == 0 {
        Check::failed("sites", "the library defines none of the functions that are probed", "use an unstripped library")
    } else if census.slow.is_empty() && census.unprobeable == 0 {
        Check::ok("sites", census.to_string())
    } else {
        let names: Vec<String> = census.slow.iter().map(|slow| format!("-{}", short(&slow.name))).collect();
        let fix = match names.len() {
            0 => "nothing: those calls are left out".to_owned(),
            1..=4 => format!("if they are called often: --functions default,{}", names.join(",")),
            _ => "if they are called often, leave them out: --functions default,-NAME".to_owned(),
        };
        Check::limited("sites", format!("{census}{}", by_reason(census)), fix)
            .because("a slow probe is single-stepped: two to twenty times dearer")
    };
    check.with(data(census))
}

/// Of every function, which nobody needs to ask for.
pub(super) fn of_all(census: &Census) -> Check {
    Check::info("all-sites", format!("with --functions all: {census}")).with(data(census))
}

/// `: MPI_Test (it branches first), …`
fn by_reason(census: &Census) -> String {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for slow in census.slow.iter().take(MOST_NAMED) {
        groups.entry(slow.reason.to_string()).or_default().push(&slow.name);
    }
    let groups: Vec<String> = groups.iter().map(|(reason, names)| format!("{} ({reason})", names.join(", "))).collect();
    let more = census.slow.len().saturating_sub(MOST_NAMED);
    match (groups.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(": {}", groups.join("; ")),
        (false, more) => format!(": {}; and {more} more", groups.join("; ")),
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("MPI_").unwrap_or(name)
}

fn data(census: &Census) -> Value {
    let slow = census.slow.iter().map(|slow| json!({ "function": slow.name, "reason": slow.reason.to_string() }));
    json!({
        "functions": census.total(),
        "fast": census.fast,
        "moved": census.moved,
        "slow": slow.collect::<Vec<_>>(),
        "unprobeable": census.unprobeable,
    })
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;
    use mpiprobe_plan::{SlowFunction, SlowReason};

    fn slow(names: &[(&str, SlowReason)]) -> Vec<SlowFunction> {
        names.iter().map(|(name, reason)| SlowFunction { name: (*name).into(), reason: *reason }).collect()
    }

    #[test]
    fn all_fast_is_well() {
        let check = of_default(&Census { fast: 150, moved: 16, ..Census::default() });
        assert_eq!((check.verdict, check.finding.as_str()), (Verdict::Ok, "166 functions: 150 fast, 16 moved, 0 slow"));
        assert_eq!(check.data["moved"], 16);
    }

    #[test]
    fn slow_ones_are_named_with_their_reason() {
        let reasons =
            [("MPI_Test", SlowReason::Branch), ("MPI_Wtime", SlowReason::TooFar), ("MPI_Wait", SlowReason::Branch)];
        let check = of_default(&Census { fast: 1, slow: slow(&reasons), ..Census::default() });
        assert_eq!(
            check.finding,
            "4 functions: 1 fast, 0 moved, 3 slow: MPI_Test, MPI_Wait (it branches first); MPI_Wtime (its first \
             instructions are all single-stepped)"
        );
        assert_eq!(check.fix.as_deref(), Some("if they are called often: --functions default,-Test,-Wtime,-Wait"));
    }

    #[test]
    fn long_lists_are_cut_in_text_only() {
        let names: Vec<(&str, SlowReason)> = vec![("MPI_X", SlowReason::Branch); 30];
        let check = of_default(&Census { slow: slow(&names), ..Census::default() });
        assert!(check.finding.ends_with("; and 6 more"), "{}", check.finding);
        assert_eq!(check.data["slow"].as_array().unwrap().len(), 30);
    }

    #[test]
    fn a_library_without_functions_is_of_no_use() {
        assert_eq!(of_default(&Census::default()).verdict, Verdict::Failed);
    }
}
