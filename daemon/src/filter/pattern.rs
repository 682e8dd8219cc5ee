//! A regular expression that remembers: there are few names, and thousands of rows have them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use regex_lite::Regex;

/// More texts are not remembered.
const MOST: usize = 4096;

#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    known: Mutex<HashMap<Box<str>, bool>>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, regex_lite::Error> {
        Ok(Self { regex: Regex::new(text)?, known: Mutex::default() })
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
