//! Bytes of OTF2 (Open Trace Format 2, version 3.0): records in chunks.

/// First bytes of a chunk: its header, and that numbers of full width are little-endian.
const CHUNK: [u8; 2] = [3, 0x42];
/// Bytes of a chunk's head: the above, and the numbers of the first and last event in it.
const CHUNK_HEAD: usize = 18;
const END_OF_FILE: u8 = 2;
const TIMESTAMP: u8 = 5;
/// Chunks may have this size to 16 MiB; the last one of a file is as short as it is.
pub(super) const EVENT_CHUNK: usize = 1 << 20;
pub(super) const DEFINITION_CHUNK: usize = 4 << 20;
/// More than the longest event takes, with its time.
const LONGEST_EVENT: usize = 256;
/// A value that is not there.
pub(super) const UNDEFINED: u32 = u32::MAX;

/// A number as it is written: how many bytes it needs, and those. Gives how many of all these bytes are meant.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most eight")]
fn number(value: u64) -> ([u8; 9], usize) {
    // None for zero.
    let length = 8 - value.leading_zeros() / 8;
    (behind(length as u8, value), length as usize + 1)
}

/// A number of full width behind a byte.
#[inline]
fn behind(byte: u8, value: u64) -> [u8; 9] {
    let mut bytes = [byte; 9];
    let [_, rest @ ..] = &mut bytes;
    *rest = value.to_le_bytes();
    bytes
}

/// Writes the first of some bytes. All are copied, which takes less time than to copy so many of them.
#[inline]
fn put_first<const N: usize>(to: &mut Vec<u8>, bytes: [u8; N], count: usize) {
    to.extend_from_slice(&bytes);
    to.truncate(to.len() - N + count);
}

#[inline]
pub(super) fn put(to: &mut Vec<u8>, value: u64) {
    let (bytes, count) = number(value);
    put_first(to, bytes, count);
}

/// A number of 32 bits, of which the highest stands for nothing.
#[inline]
pub(super) fn put_id(to: &mut Vec<u8>, value: u32) {
    if value == UNDEFINED { to.push(0xff) } else { put(to, value.into()) }
}

/// Bytes that are written again and again, `N` at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared<const N: usize> {
    bytes: [u8; N],
    count: u8,
}

impl<const N: usize> Prepared<N> {
    pub(super) const NOTHING: Self = Self { bytes: [0; N], count: 0 };

    fn and(mut self, more: &[u8]) -> Self {
        for (place, &byte) in self.bytes.iter_mut().skip(self.count.into()).zip(more) {
            *place = byte;
            self.count += 1;
        }
        self
    }

    pub(super) fn byte(self, byte: u8) -> Self {
        self.and(&[byte])
    }

    pub(super) fn number(self, value: u64) -> Self {
        let (bytes, count) = number(value);
        self.and(bytes.get(..count).unwrap_or_default())
    }

    /// As [`put_id`].
    pub(super) fn id(self, value: u32) -> Self {
        if value == UNDEFINED { self.byte(0xff) } else { self.number(value.into()) }
    }

    #[inline]
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        put_first(to, self.bytes, self.count.into());
    }
}

/// A record with its length: what `write` writes is its content.
#[inline]
pub(super) fn record(to: &mut Vec<u8>, id: u8, write: impl FnOnce(&mut Vec<u8>)) {
    to.extend_from_slice(&[id, 0]);
    let at = to.len();
    write(to);
    let length = to.len() - at;
    match u8::try_from(length) {
        Ok(short) if short < 0xff => {
            if let Some(place) = to.get_mut(at - 1) {
                *place = short;
            }
        }
        _ => lengthen(to, at, length),
    }
}

/// Gives a record that begins there a long length, which 0xff says that follows.
#[cold]
fn lengthen(to: &mut Vec<u8>, at: usize, length: usize) {
    let long = (length as u64).to_le_bytes();
    to.splice(at - 1..at, std::iter::once(0xff).chain(long));
}

/// Events of one location.
#[derive(Debug)]
pub(super) struct EventFile {
    /// Of the chunk that is being filled.
    chunk: Vec<u8>,
    time_ns: Option<u64>,
    /// Events so far, and before this chunk.
    pub(super) count: u64,
    before: u64,
}

impl EventFile {
    pub(super) fn new() -> Self {
        let mut file = Self { chunk: Vec::with_capacity(EVENT_CHUNK), time_ns: None, count: 0, before: 0 };
        file.begin();
        file
    }

    fn begin(&mut self) {
        self.chunk.clear();
        self.chunk.extend_from_slice(&CHUNK);
        self.chunk.resize(CHUNK_HEAD, 0);
        self.before = self.count;
        // Each chunk can be read by itself.
        self.time_ns = None;
    }

    #[cold]
    fn next_chunk(&mut self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        self.chunk.resize(EVENT_CHUNK, 0);
        self.write_out(to)?;
        self.begin();
        Ok(())
    }

    /// An event at a time, which must not go back: what goes back is taken for the time before.
    #[inline]
    pub(super) fn event(
        &mut self,
        time_ns: u64,
        to: &mut dyn std::io::Write,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> std::io::Result<()> {
        if self.chunk.len() + LONGEST_EVENT > EVENT_CHUNK {
            self.next_chunk(to)?;
        }
        if self.time_ns.is_none_or(|before| before < time_ns) {
            self.chunk.extend_from_slice(&behind(TIMESTAMP, time_ns));
            self.time_ns = Some(time_ns);
        }
        write(&mut self.chunk);
        self.count += 1;
        Ok(())
    }

    fn write_out(&mut self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        let first = if self.count > self.before { self.before + 1 } else { 0 };
        for (at, number) in [(2, first), (10, if first == 0 { 0 } else { self.count })] {
            if let Some(place) = self.chunk.get_mut(at..at + 8) {
                place.copy_from_slice(&number.to_le_bytes());
            }
        }
        to.write_all(&self.chunk)
    }

    pub(super) fn finish(mut self, to: &mut dyn std::io::Write) -> std::io::Result<u64> {
        self.chunk.push(END_OF_FILE);
        self.write_out(to)?;
        Ok(self.count)
    }
}

/// Definitions, cut into chunks.
pub(super) fn definition_file(records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = Vec::new();
    let begin = |chunk: &mut Vec<u8>| {
        chunk.clear();
        chunk.extend_from_slice(&CHUNK);
        chunk.resize(CHUNK_HEAD, 0);
    };
    begin(&mut chunk);
    for record in records {
        if chunk.len() + record.len() + 1 > DEFINITION_CHUNK {
            chunk.resize(DEFINITION_CHUNK, 0);
            bytes.append(&mut chunk);
            begin(&mut chunk);
        }
        chunk.extend_from_slice(record);
    }
    chunk.push(END_OF_FILE);
    bytes.append(&mut chunk);
    bytes
}

/// What describes the archive.
#[derive(Debug)]
pub(super) struct Anchor<'a> {
    pub(super) locations: u64,
    pub(super) definitions: u64,
    pub(super) machine: &'a str,
    pub(super) creator: &'a str,
    pub(super) description: &'a str,
    pub(super) properties: &'a [(&'a str, String)],
    pub(super) trace_id: u64,
}

impl Anchor<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        const ANCHOR_FORMAT: u8 = 3;
        const TRACE_FORMAT: u8 = 2;
        const LIBRARY: [u8; 3] = [3, 0, 0];
        const POSIX: u8 = 1;
        const UNCOMPRESSED: u8 = 1;
        let mut bytes = Vec::from(CHUNK);
        bytes.extend_from_slice(b"OTF2\0");
        bytes.extend_from_slice(&[ANCHOR_FORMAT, TRACE_FORMAT]);
        bytes.extend_from_slice(&LIBRARY);
        for size in [EVENT_CHUNK as u64, DEFINITION_CHUNK as u64] {
            bytes.extend_from_slice(&size.to_le_bytes());
        }
        bytes.extend_from_slice(&[POSIX, UNCOMPRESSED]);
        for number in [self.locations, self.definitions] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let mut text = |text: &str| {
            bytes.extend(text.bytes().filter(|&byte| byte != 0));
            bytes.push(0);
        };
        [self.machine, self.creator, self.description].into_iter().for_each(&mut text);
        let properties = u32::try_from(self.properties.len()).unwrap_or(0);
        bytes.extend_from_slice(&properties.to_le_bytes());
        for (name, value) in self.properties {
            for text in [*name, value.as_str()] {
                bytes.extend(text.bytes().filter(|&byte| byte != 0));
                bytes.push(0);
            }
        }
        bytes.extend_from_slice(&self.trace_id.max(1).to_le_bytes());
        // Neither snapshots nor thumbnails.
        bytes.extend_from_slice(&[0; 8]);
        bytes.push(END_OF_FILE);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let bytes = |value| {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            bytes
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(1), [1, 1]);
        assert_eq!(bytes(256), [2, 0, 1]);
        assert_eq!(bytes(u64::MAX - 1), [8, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        let mut id = Vec::new();
        put_id(&mut id, UNDEFINED);
        assert_eq!(id, [0xff]);
    }

    #[test]
    fn long_records_have_long_lengths() {
        let mut bytes = Vec::new();
        record(&mut bytes, 10, |to| to.extend([7; 300]));
        assert_eq!(bytes.get(..10), Some([10, 0xff, 44, 1, 0, 0, 0, 0, 0, 0].as_slice()));
        assert_eq!(bytes.len(), 1 + 9 + 300);
        let mut bytes = Vec::new();
        record(&mut bytes, 22, |_| {});
        assert_eq!(bytes, [22, 0]);
    }
}
