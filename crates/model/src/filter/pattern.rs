//! A regular expression that remembers: there are few names, and thousands of rows have them.
//!
//! Filters come from the command line, from saved views and key by key from the keyboard, and none of them may take seconds or
//! gigabytes. `regex` makes a program of limited size of a pattern or refuses it, keeps nothing for each group of it, and takes time
//! in proportion to the text, whatever the pattern is. (`regex-lite` keeps a place for each group in each state: 36 GB for one line.)

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use regex::{Regex, RegexBuilder};

/// More texts are not remembered.
const MOST: usize = 4096;
/// Bytes of a pattern: all names of MPI's functions of one group fit into it.
const LONGEST: usize = 2000;
/// Bytes of the program that a pattern is made into.
const LARGEST: usize = 128 << 10;
/// Bytes that are kept besides, to be faster.
const CACHE: usize = 256 << 10;
/// Groups inside each other.
const DEEPEST: u32 = 50;

#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    known: Mutex<HashMap<Box<str>, bool>>,
}

impl Pattern {
    /// Says why it is none.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("it is longer than {LONGEST} bytes"));
        }
        let mut builder = RegexBuilder::new(text);
        let regex = builder.size_limit(LARGEST).dfa_size_limit(CACHE).nest_limit(DEEPEST).build();
        Ok(Self { regex: regex.map_err(|error| reason(&error))?, known: Mutex::default() })
    }

    /// Whether it is found anywhere in the text.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&is_match) = known.get(text) {
            return is_match;
        }
        let is_match = self.regex.is_match(text);
        if known.len() < MOST {
            known.insert(text.into(), is_match);
        }
        is_match
    }
}

/// On one line, without the pattern, which the user sees anyway.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "it stands for too much: repeat less of it".to_owned(),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_possible() {
        let functions = vec!["MPI_Reduce_scatter_block_init"; 60].join("|");
        for (pattern, text) in [
            (r"^MPI_I?(send|recv)$", "MPI_Irecv"),
            (r"\w+\.c:\d{1,5} in \w+", "solve.c:112 in step"),
            (r"[é-ü]{2}.\b", "éüx"),
            (&functions, "MPI_Reduce_scatter_block_init"),
        ] {
            let is_match = Pattern::new(&format!("(?i){pattern}")).map(|pattern| pattern.is_match(text));
            assert_eq!(is_match, Ok(true), "{pattern}");
        }
    }

    /// Each of them took seconds, or gigabytes.
    /// Invariant FILTERS-BOUNDED.
    #[test]
    fn what_would_take_long_or_much_is_refused() {
        let groups = "(a".repeat(200) + &")".repeat(200);
        for (pattern, why) in [
            ("a".repeat(LONGEST + 1), "longer"),
            (groups, "nest"),
            (r"(\w{100}){100}".to_owned(), "too much"),
            ("((((a{20}){20}){20}){20})".to_owned(), "too much"),
            ("(a?){900}(b?){900}(c?){900}".repeat(30), "too much"),
            ("(".to_owned(), "unclosed"),
        ] {
            let error = Pattern::new(&pattern).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{pattern}: {error}");
        }
    }

    /// As large as is permitted, and on a long text: this ends.
    #[test]
    fn the_largest_that_is_permitted_is_fast() {
        let pattern = "(a?)".repeat(450) + "b$";
        assert!(pattern.len() < LONGEST);
        assert!(!Pattern::new(&pattern).unwrap().is_match(&"a".repeat(20_000)));
    }
}
