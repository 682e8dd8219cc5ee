//! Whether the process runs the code that its library's file has.

use mpiprobe_discover::{
    ForeignFile, Process, ProcessError,
    mappings::{MappedFile, Mappings},
};
use mpiprobe_functions::FunctionId;
use mpiprobe_model::Check;
use mpiprobe_plan::{Difference, Plan, PlannedFunction, compare_code};
use serde_json::json;

/// Functions of a plan, by how their code in memory compares with the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Comparison {
    same: usize,
    /// Probed by others, or by another session of mpiprobe.
    breakpoints: usize,
    /// With what is different.
    patched: Vec<String>,
    /// Not where the file is mapped executable.
    elsewhere: usize,
}

pub(super) fn check(process: &Process, (file, opened): (&MappedFile, &ForeignFile), plan: &Plan<FunctionId>) -> Check {
    let compared = process.memory_with(opened).and_then(|memory| compare(process, &memory, file, plan));
    match compared {
        Ok(comparison) => judge(&comparison),
        Err(error) => Check::failed_by("code", &error),
    }
}

fn compare(
    process: &Process,
    memory: &ForeignFile,
    file: &MappedFile,
    plan: &Plan<FunctionId>,
) -> Result<Comparison, ProcessError> {
    let mut comparison = Comparison::default();
    for planned in &plan.functions {
        let PlannedFunction { function, .. } = planned;
        let Some(address) = file.address_of(function.file_offset) else {
            comparison.elsewhere += 1;
            continue;
        };
        match process.alive_after("mem", compare_code(memory, address, &planned.fingerprint))? {
            Ok(()) => comparison.same += 1,
            Err(Difference::Breakpoint { .. }) => comparison.breakpoints += 1,
            Err(difference) => comparison.patched.push(format!("{} ({difference})", function.name())),
        }
    }
    Ok(comparison)
}

fn judge(comparison: &Comparison) -> Check {
    let Comparison { same, breakpoints, patched, elsewhere } = comparison;
    let total = same + breakpoints + patched.len() + elsewhere;
    let check = if *elsewhere > 0 {
        Check::failed(
            "code",
            format!("{elsewhere} of {total} functions are not where the library's file is mapped"),
            "start the job without a tool that copies program text into huge pages (libhugetlbfs HUGETLB_ELFMAP, iodlr)",
        )
        .because("probes belong to the file: on a copy of its code they never fire")
    } else if let Some(first) = patched.first() {
        Check::limited(
            "code",
            format!("{} of {total} functions are patched in memory and are not probed, such as {first}", patched.len()),
            "start the job without the tool that patches them",
        )
    } else if *breakpoints > 0 {
        Check::limited(
            "code",
            format!("{breakpoints} of {total} functions have a breakpoint"),
            "end the other observation, if its cost matters",
        )
        .because("another tool or session probes them too: both count, and each call pays for both")
    } else {
        Check::ok("code", format!("all {total} functions are in memory as in the file"))
    };
    check.with(json!({
        "same": same,
        "breakpoints": breakpoints,
        "patched": patched,
        "elsewhere": elsewhere,
    }))
}

/// Memory that holds code of no file, and code that may be written to.
pub(super) fn text(file: &MappedFile, mappings: &Mappings) -> Check {
    let writable = file.ranges.iter().any(|range| range.writable);
    let check = match (writable, mappings.anonymous_text) {
        (true, _) => Check::limited(
            "mapping",
            "the library's code is mapped writable",
            "start the job without a tool that patches it",
        )
        .because("code that changes while it is observed may break under a probe"),
        (false, 0) => Check::ok("mapping", "all its code belongs to files"),
        (false, bytes) => Check::info("mapping", format!("{} KiB of its code belong to no file", bytes / 1024))
            .because("code generated at run time; MPI functions are not among it"),
    };
    check.with(json!({ "writable": writable, "anonymous_text_bytes": mappings.anonymous_text }))
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;

    const LINE: &[u8] = b"1000-2000 r-xp 00000000 08:01 7   /lib/libmpi.so\n";

    fn text_of(maps: &[u8]) -> Check {
        let mappings = Mappings::parse(maps, false);
        text(&mappings.files[0], &mappings)
    }

    #[test]
    fn the_worst_difference_is_told() {
        let same = Comparison { same: 10, ..Comparison::default() };
        assert_eq!(judge(&same).finding, "all 10 functions are in memory as in the file");
        let probed = Comparison { breakpoints: 2, ..same.clone() };
        assert_eq!(judge(&probed).finding, "2 of 12 functions have a breakpoint");
        assert_eq!(judge(&probed).verdict, Verdict::Limited);
        let patched = Comparison { patched: vec!["MPI_Send (so)".into()], ..probed };
        assert!(judge(&patched).finding.ends_with("such as MPI_Send (so)"));
        let copied = Comparison { elsewhere: 10, ..Comparison::default() };
        assert_eq!(judge(&copied).verdict, Verdict::Failed);
    }

    #[test]
    fn code_of_no_file_and_writable_code_are_seen() {
        assert_eq!(text_of(LINE).verdict, Verdict::Ok);
        let generated = [LINE, b"8000-c000 r-xp 00000000 00:00 0\n"].concat();
        assert_eq!(text_of(&generated).finding, "16 KiB of its code belong to no file");
        let writable = String::from_utf8_lossy(LINE).replace("r-xp", "rwxp");
        assert_eq!(text_of(writable.as_bytes()).verdict, Verdict::Limited);
    }
}
