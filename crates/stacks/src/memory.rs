//! Memory of a thread that is being unwound: what was copied of its stack, and what else of its process has to be read.

use std::{collections::HashMap, fs::File, os::unix::fs::FileExt as _};

use crate::copy::Stack;

const PAGE: u64 = 4096;
/// Pages that are read of one thread besides what was copied: frames of large local arrays.
const MAX_PAGES: usize = 64;

/// Where words of memory come from.
#[derive(Debug)]
pub struct Memory<'a> {
    copied: &'a Stack,
    /// `/proc/PID/mem`; `None` if it is not to be read.
    process: Option<&'a File>,
    pages: HashMap<u64, Option<Vec<u8>>>,
    /// Whether something was read later than the copy was made.
    read_later: bool,
}

impl<'a> Memory<'a> {
    pub fn new(copied: &'a Stack, process: Option<&'a File>) -> Self {
        Self { copied, process, pages: HashMap::new(), read_later: false }
    }

    /// The word at an address; `None` if it cannot be read, or enough was read.
    pub fn word(&mut self, address: u64) -> Option<u64> {
        if let Some(word) = self.copied.word(address) {
            return Some(word);
        }
        let (file, within) = (self.process?, address % PAGE);
        // Stacks are aligned: a word that goes over a page's end is none of a stack's.
        if within > PAGE - 8 {
            return None;
        }
        let page = address - within;
        if !self.pages.contains_key(&page) {
            if self.pages.len() >= MAX_PAGES {
                return None;
            }
            let mut bytes = vec![0; usize::try_from(PAGE).ok()?];
            let read = file.read_exact_at(&mut bytes, page).ok().map(|()| bytes);
            self.pages.insert(page, read);
        }
        let bytes = self.pages.get(&page)?.as_ref()?;
        self.read_later = true;
        bytes.get(usize::try_from(within).ok()?..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The same, and whether that is part of the stack that was copied.
    pub(crate) fn word_and_place(&mut self, address: u64) -> Option<(u64, bool)> {
        match self.copied.word(address) {
            Some(word) => Some((word, true)),
            None => Some((self.word(address)?, false)),
        }
    }

    /// Whether words were read that were not copied with the registers.
    pub fn was_read_later(&self) -> bool {
        self.read_later
    }
}
