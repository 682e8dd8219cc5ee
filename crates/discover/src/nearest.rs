//! "Did you mean …?"

/// At most this many suggestions: more is a list, not a hint.
const SUGGESTIONS: usize = 3;

/// Those of `candidates` that somebody who typed `wanted` may have meant, nearest first.
pub(crate) fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    // A third of the letters may be wrong, and in short names one or two swapped.
    let tolerance = (wanted.chars().count() / 3).max(1);
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| !candidate.is_empty())
        .filter_map(|candidate| {
            let distance = strsim::damerau_levenshtein(&wanted.to_lowercase(), &candidate.to_lowercase());
            let is_part = wanted.len() >= 3 && candidate.contains(wanted);
            (distance <= tolerance || is_part).then_some((distance, candidate))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(SUGGESTIONS).map(|(_, candidate)| candidate.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_and_parts_of_names() {
        let names = ["ring", "bash", "my_solver.x", "Ring2", "ring"];
        assert_eq!(nearest("rnig", names), ["ring"]);
        assert_eq!(nearest("RING", names), ["ring", "Ring2"]);
        assert_eq!(nearest("solver", names), ["my_solver.x"]);
        assert_eq!(nearest("python", names), Vec::<String>::new());
        assert_eq!(nearest("", names), Vec::<String>::new());
    }
}
