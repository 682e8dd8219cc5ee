//! A profile, from text that comes bit by bit: of a large job nearly all of the text is rows of ranks, and each is read as soon as it is
//! there, so that no more text is held than that of one.

use std::io::{self, Read};

use mpiprobe_model::{Profile, RankProfile};
use serde::de::DeserializeOwned;

use super::{FrameError, possible::is_possible, text::harmless};

/// Bytes that are looked through at once.
const BLOCK: usize = 1 << 16;
/// The field whose elements are read one by one.
const RANKS: &[u8] = b"\"ranks\"";

/// A profile as JSON that somebody may have written: made fit for a terminal, and believed only as far as it can be one. Reads all
/// there is.
pub fn profile_of_json(from: impl Read) -> Result<Profile, FrameError> {
    let profile = read_profile(from, "?")?;
    if is_possible(&profile) { Ok(profile) } else { Err(FrameError::Impossible) }
}

/// Another value that somebody says in JSON; nothing in its texts can drive a terminal.
pub fn value_of_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, FrameError> {
    of_text(json, "?")
}

/// `by` is the version that has written it.
pub(super) fn read_profile(mut from: impl Read, by: &str) -> Result<Profile, FrameError> {
    let mut parts = Parts { by, ..Parts::default() };
    let mut block = vec![0; BLOCK];
    loop {
        match from.read(&mut block) {
            Ok(0) => break,
            Ok(length) => parts.add(block.get(..length).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FrameError::Read(error)),
        }
    }
    let mut profile: Profile = of_text(&parts.outside, by)?;
    if !parts.ranks.is_empty() {
        profile.ranks = parts.ranks.into();
    }
    Ok(profile)
}

/// A value from all of its text.
pub(super) fn of_text<T: DeserializeOwned>(json: &[u8], by: &str) -> Result<T, FrameError> {
    let text = harmless(json).ok_or(FrameError::NoText)?;
    serde_json::from_str(&text).map_err(|error| FrameError::Content { error, by: by.to_owned() })
}

/// Divides text into the elements of the field `ranks`, and the rest, in which that field is empty. Of text that is no JSON, the parts
/// are none either, and reading them says so; only commas between elements are not looked at.
#[derive(Debug, Default)]
struct Parts<'a> {
    by: &'a str,
    outside: Vec<u8>,
    ranks: Vec<RankProfile>,
    /// The element that has begun.
    element: Vec<u8>,
    /// Brackets that are open.
    depth: u64,
    in_string: bool,
    is_escaped: bool,
    in_ranks: bool,
}

/// Where a byte is of interest.
const IN_STRINGS: u8 = 1;
const OUTSIDE: u8 = 2;
#[expect(clippy::indexing_slicing, reason = "the compiler does that, and sees that all are there")]
const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    kinds[b'"' as usize] = IN_STRINGS | OUTSIDE;
    kinds[b'\\' as usize] = IN_STRINGS;
    kinds[b'{' as usize] = OUTSIDE;
    kinds[b'}' as usize] = OUTSIDE;
    kinds[b'[' as usize] = OUTSIDE;
    kinds[b']' as usize] = OUTSIDE;
    kinds[b',' as usize] = OUTSIDE;
    kinds
};

/// Brackets around an element, and around those in it.
const ELEMENT: u64 = 3;

impl Parts<'_> {
    fn add(&mut self, block: &[u8]) -> Result<(), FrameError> {
        // What has been looked at and not been put anywhere begins here.
        let mut begin = 0;
        let mut at = 0;
        while let Some((byte, next)) = self.next_of_interest(block, at) {
            at = next;
            match byte {
                b'"' => self.in_string = !self.in_string,
                b'\\' => self.is_escaped = true,
                b'{' | b'[' => {
                    self.put(block.get(begin..at - 1).unwrap_or_default());
                    begin = at - 1;
                    self.depth = self.depth.saturating_add(1);
                    self.in_ranks |= byte == b'[' && self.depth == ELEMENT - 1 && is_ranks(&self.outside);
                }
                b'}' | b']' => {
                    let is_element = self.in_ranks && self.depth == ELEMENT;
                    self.in_ranks &= self.depth >= ELEMENT;
                    if self.depth <= ELEMENT {
                        self.put(block.get(begin..at).unwrap_or_default());
                        begin = at;
                    }
                    self.depth = self.depth.saturating_sub(1);
                    if is_element {
                        self.ranks.push(of_text(&self.element, self.by)?);
                        self.element.clear();
                    }
                }
                _ if self.in_ranks && self.depth < ELEMENT => {
                    self.put(block.get(begin..at - 1).unwrap_or_default());
                    begin = at;
                }
                _ => {}
            }
        }
        self.put(block.get(begin..).unwrap_or_default());
        Ok(())
    }

    /// The next byte from a place on that says where a string or a value begins or ends, and where that is over. A table is asked: all of a large
    /// profile goes through here.
    fn next_of_interest(&mut self, block: &[u8], from: usize) -> Option<(u8, usize)> {
        // What comes behind a backslash says nothing.
        let is_skipped = self.is_escaped && from < block.len();
        self.is_escaped &= !is_skipped;
        let from = from + usize::from(is_skipped);
        let rest = block.get(from..)?;
        let kind = if self.in_string { IN_STRINGS } else { OUTSIDE };
        let length = rest.iter().position(|&byte| KINDS.get(usize::from(byte)).is_some_and(|is| is & kind != 0))?;
        Some((*rest.get(length)?, from + length + 1))
    }

    fn put(&mut self, text: &[u8]) {
        if self.in_ranks && self.depth >= ELEMENT { &mut self.element } else { &mut self.outside }.extend(text);
    }
}

/// Whether the value that begins behind this text is that of the field.
fn is_ranks(text: &[u8]) -> bool {
    text.trim_ascii_end().strip_suffix(b":").is_some_and(|text| text.trim_ascii_end().ends_with(RANKS))
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::sample;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// With strings and brackets wherever they could be taken for the field's.
    fn profile() -> Profile {
        let mut profile = sample::profile(sample::ranks(3));
        profile.host = "a \"ranks\":[{".into();
        profile.incomplete_because = vec!["]}".into(), "\\\"".into()];
        for rank in &mut profile.ranks {
            rank.executable = "/bin/{[,]}\"\\".into();
            rank.functions =
                vec![sample::function("MPI_Send", 3, 10).all, sample::function("MPI_Recv", 3, 10).all].into();
        }
        profile
    }

    /// So many bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(to.len());
            let (now, later) = self.0.split_at(length);
            to[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    #[test]
    fn what_comes_bit_by_bit_is_the_same() {
        let value = serde_json::to_value(profile()).unwrap();
        for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            for at_once in [1, 2, 7, 100, text.len()] {
                let read = read_profile(Slowly(text.as_bytes(), at_once), "?").unwrap();
                assert_eq!(serde_json::to_value(read).unwrap(), value, "{at_once} bytes at once");
            }
        }
    }

    #[test]
    fn what_is_no_profile_is_said_to_be_none() {
        let text = serde_json::to_string(&profile()).unwrap();
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            read_profile(text.replacen(from, to, 1).as_bytes(), "?").map(|_| ())
        };
        for (from, to) in [
            ("\"ranks\":[{", "\"ranks\":[null,{"),
            ("\"ranks\":[{", "\"ranks\":[7,{"),
            ("\"ranks\":[{", "\"ranks\":[[],{"),
            ("\"ranks\":[{", "\"ranks\":[],\"ranks\":[{"),
            ("\"ranks\":[{", "\"rank\":[{"),
            ("\"pid\":", "\"pid\":{},\"x\":"),
            ("{", "[{"),
        ] {
            assert!(changed(from, to).is_err(), "{from} {to}");
        }
        assert!(read_profile((text.clone() + "]").as_bytes(), "?").is_err());
        assert!(read_profile((text + " \n").as_bytes(), "?").is_ok());
    }

    proptest! {
        #[test]
        fn cut_or_changed_anywhere_it_is_read_as_the_whole_text_would_be(at: prop::sample::Index, byte: u8, cut: bool) {
            let mut text = serde_json::to_vec(&profile()).unwrap();
            let at = at.index(text.len());
            if cut { text.truncate(at) } else { text[at] = byte }
            let whole: Result<Profile, _> = of_text(&text, "?");
            let parts = read_profile(text.as_slice(), "?");
            let value = |read: Result<Profile, FrameError>| read.ok().map(|read| serde_json::to_value(read).unwrap());
            let is_comma = byte == b',' && !cut;
            let (whole, parts): (Option<Value>, Option<Value>) = (value(whole), value(parts));
            prop_assert!(whole == parts || whole.is_none() && is_comma, "{at}");
        }
    }
}
