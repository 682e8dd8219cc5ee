//! Where in a file which moment is: from the heads of chunks only.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use memchr::memmem;

use super::{
    chunk::{ChunkKind, HEAD, Head, MARKER},
    format::{MOST_FRAMES, START},
};

/// Bytes that are looked through at once for the next head.
const BLOCK: usize = 1 << 16;
/// Damaged parts that are stepped over; who has more of them may have written them on purpose, to make reading last for ever.
const MOST_DAMAGE: usize = 100;

/// A chunk: its head, and where its bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) head: Head,
    /// Of the bytes behind the head.
    pub(super) offset: u64,
}

/// A moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) profile: Chunk,
    /// `None`: they were not recorded, or are damaged.
    pub(super) sums: Option<Chunk>,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) header: Option<Chunk>,
    pub(super) frames: Vec<Frame>,
    pub(super) end: Option<Chunk>,
    /// What is wrong with the file, for people.
    pub(super) notes: Vec<String>,
}

impl Index {
    /// Reads all heads.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let (mut index, mut at) = (Self::default(), START as u64);
        let mut damaged = 0;
        while at < length {
            let Some(behind) = at.checked_add(HEAD as u64).filter(|&behind| behind <= length) else {
                index.cut_off(None);
                break;
            };
            let mut bytes = [0; HEAD];
            file.read_exact_at(&mut bytes, at)?;
            let Some(head) = Head::of(&bytes) else {
                damaged += 1;
                let next = if damaged < MOST_DAMAGE { next_head(file, at + 1, length)? } else { None };
                let upto = next.unwrap_or(length);
                index.notes.push(format!("bytes {at} to {} are damaged or left out", upto - 1));
                at = upto;
                continue;
            };
            let Some(next) = behind.checked_add(head.stored.into()).filter(|&next| next <= length) else {
                index.cut_off(Some(head.kind));
                break;
            };
            if index.frames.len() >= MOST_FRAMES {
                index.notes.push(format!("only its first {MOST_FRAMES} moments are shown"));
                break;
            }
            index.add(Chunk { head, offset: behind });
            at = next;
        }
        if index.end.is_none() && index.notes.is_empty() {
            index.notes.push("it has no end: mpiprobe was killed, or records still".into());
        }
        Ok(index)
    }

    fn add(&mut self, chunk: Chunk) {
        match chunk.head.kind {
            ChunkKind::Header => self.header = self.header.or(Some(chunk)),
            ChunkKind::Frame => self.frames.push(Frame { profile: chunk, sums: None }),
            ChunkKind::Sums => {
                let of_it = |frame: &&mut Frame| frame.profile.head.at_ns == chunk.head.at_ns;
                if let Some(frame) = self.frames.last_mut().filter(of_it) {
                    frame.sums = Some(chunk);
                }
            }
            ChunkKind::End => self.end = Some(chunk),
            ChunkKind::Unknown(_) => {}
        }
    }

    /// Within a chunk of this kind, if that can be read. A moment without its sums is whole: they are found again.
    fn cut_off(&mut self, kind: Option<ChunkKind>) {
        let is_whole = match kind {
            Some(kind) => kind == ChunkKind::Sums,
            None => self.frames.last().is_some_and(|frame| frame.sums.is_none()),
        };
        if is_whole {
            return;
        }
        let number = self.frames.len() + 1;
        self.notes.push(format!("moment {number} is cut off and left out: mpiprobe was killed, or records still"));
    }
}

/// The next place where a head is whole.
fn next_head(file: &File, from: u64, length: u64) -> io::Result<Option<u64>> {
    let mut block = vec![0; BLOCK];
    let mut at = from;
    while length.saturating_sub(at) >= HEAD as u64 {
        let room = usize::try_from(length - at).unwrap_or(BLOCK).min(BLOCK);
        let Some(read) = block.get_mut(..room) else { return Ok(None) };
        file.read_exact_at(read, at)?;
        for place in memmem::find_iter(read, &MARKER) {
            let bytes = read.get(place..).and_then(|bytes| bytes.first_chunk());
            if bytes.and_then(Head::of).is_some() {
                return Ok(Some(at + place as u64));
            }
        }
        // A head may begin at the end of the block.
        at += (room - HEAD + 1) as u64;
    }
    Ok(None)
}
