//! Files other than the implementation that define MPI functions.

use mpiprobe_discover::{MpiLibrary, mappings::MappedFile};
use mpiprobe_model::Check;
use serde_json::json;

/// `libraries` are all files that define MPI's functions, implementations first; `tools` those that pass calls on.
pub(super) fn others(libraries: &[MpiLibrary], tools: &[MappedFile]) -> Check {
    let others = libraries.iter().skip(1).filter(|library| library.recognised.defines_pmpi);
    let implementations: Vec<String> = others.map(|library| library.file.display_path()).collect();
    judge(&implementations, &tools.iter().map(MappedFile::display_path).collect::<Vec<String>>())
}

fn judge(implementations: &[String], tools: &[String]) -> Check {
    let check = if !implementations.is_empty() {
        Check::limited(
            "other-libraries",
            format!("a further MPI implementation is loaded: {}", implementations.join(", ")),
            "link all parts of the program with one MPI",
        )
        .because("only calls of the first are seen")
    } else if !tools.is_empty() {
        Check::info("other-libraries", format!("{} wraps MPI", tools.join(", ")))
            .because("calls are counted once, at the library; what this layer costs is shown apart")
    } else {
        Check::ok("other-libraries", "no other library defines MPI functions")
    };
    check.with(json!({ "implementations": implementations, "tools": tools }))
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;

    #[test]
    fn tools_are_fine_and_a_second_implementation_is_not() {
        let [none, one] = [vec![], vec!["/x.so".to_owned()]];
        assert_eq!(judge(&none, &none).verdict, Verdict::Ok);
        assert_eq!(judge(&none, &one).finding, "/x.so wraps MPI");
        assert_eq!(judge(&none, &one).verdict, Verdict::Info);
        assert_eq!(judge(&one, &one).verdict, Verdict::Limited);
    }
}
