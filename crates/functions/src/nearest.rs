//! Suggestions for misspelt names.

use crate::FunctionId;
use crate::lookup::without_prefix;

/// The function whose name is nearest to a misspelt one, with `MPI_`; nothing if none is near.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = without_prefix(name);
    let (short_name, _) = nearest_of(name, FunctionId::all().map(|id| id.function().short_name()))?;
    crate::by_name_ignoring_case(short_name).map(|id| id.function().name)
}

/// The candidate nearest to `name`, and its distance: at most one edit in three characters. The first of several.
pub(crate) fn nearest_of<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    candidates
        .filter_map(|candidate| {
            let limit = name.len().max(candidate.len()).div_ceil(3).min(name.len().saturating_sub(1));
            distance(name.as_bytes(), candidate.as_bytes())
                .filter(|&edits| edits <= limit)
                .map(|edits| (candidate, edits))
        })
        .min_by_key(|&(_, edits)| edits)
}

/// Longer than any function's name.
const LONGEST: usize = 64;

/// How many insertions, deletions, replacements and swaps of neighbours make `b` of `a`, ignoring case; nothing if
/// either is longer than any name.
///
/// Optimal string alignment: row by row of the matrix of distances between prefixes, of which three are kept.
fn distance(a: &[u8], b: &[u8]) -> Option<usize> {
    if a.len() > LONGEST || b.len() > LONGEST {
        return None;
    }
    let mut last = [0; LONGEST + 1];
    let mut row: [usize; LONGEST + 1] = core::array::from_fn(|column| column);
    for (i, from) in a.iter().enumerate() {
        let two_ago = core::mem::replace(&mut last, row);
        let mut left = i + 1;
        *row.first_mut()? = left;
        for (j, to) in b.iter().enumerate() {
            let same = from.eq_ignore_ascii_case(to);
            let replaced = *last.get(j)? + usize::from(!same);
            let mut best = replaced.min(left + 1).min(*last.get(j + 1)? + 1);
            if let (Some(i), Some(j)) = (i.checked_sub(1), j.checked_sub(1))
                && a.get(i)?.eq_ignore_ascii_case(to)
                && b.get(j)?.eq_ignore_ascii_case(from)
            {
                best = best.min(*two_ago.get(j)? + 1);
            }
            *row.get_mut(j + 1)? = best;
            left = best;
        }
    }
    row.get(b.len()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        let edits = |a: &str, b: &str| distance(a.as_bytes(), b.as_bytes());
        assert_eq!(edits("", ""), Some(0));
        assert_eq!(edits("", "send"), Some(4));
        assert_eq!(edits("send", ""), Some(4));
        assert_eq!(edits("Send", "sEND"), Some(0));
        assert_eq!(edits("sned", "send"), Some(1));
        assert_eq!(edits("snd", "send"), Some(1));
        assert_eq!(edits("ssend", "send"), Some(1));
        assert_eq!(edits("bend", "send"), Some(1));
        assert_eq!(edits("ca", "abc"), Some(3));
        assert_eq!(edits("kitten", "sitting"), Some(3));
        assert_eq!(edits(&"x".repeat(65), "send"), None);
        assert_eq!(edits(&"x".repeat(64), &"y".repeat(64)), Some(64));
    }

    #[test]
    fn typos_find_their_function() {
        assert_eq!(nearest("MPI_Sned"), Some("MPI_Send"));
        assert_eq!(nearest("mpi_alreduce"), Some("MPI_Allreduce"));
        assert_eq!(nearest("WaitAl"), Some("MPI_Waitall"));
        assert_eq!(nearest("Isend"), Some("MPI_Isend"));
        assert_eq!(nearest("alltaollv"), Some("MPI_Alltoallv"));
    }

    #[test]
    fn nothing_is_near_to_nonsense() {
        assert_eq!(nearest(""), None);
        assert_eq!(nearest("q"), None);
        assert_eq!(nearest("gethostbyname"), None);
        assert_eq!(nearest(&"MPI_Send".repeat(20)), None);
    }
}
