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

/// A number as it is written: how many bytes it needs, and those.
pub(super) fn put(to: &mut Vec<u8>, value: u64) {
    let length = 8 - (value.leading_zeros() / 8) as usize;
    // At most eight, and none for zero.
    to.extend(u8::try_from(length));
    to.extend_from_slice(value.to_le_bytes().get(..length).unwrap_or_default());
}

/// A number of 32 bits, of which the highest stands for nothing.
pub(super) fn put_id(to: &mut Vec<u8>, value: u32) {
    if value == UNDEFINED { to.push(0xff) } else { put(to, value.into()) }
}

/// A record with its length: what `write` writes is its content.
pub(super) fn record(to: &mut Vec<u8>, id: u8, write: impl FnOnce(&mut Vec<u8>)) {
    to.push(id);
    let at = to.len();
    to.push(0);
    write(to);
    let length = to.len() - at - 1;
    // 0xff says that a long length follows.
    if let Some(short) = u8::try_from(length).ok().filter(|&short| short < 0xff) {
        if let Some(place) = to.get_mut(at) {
            *place = short;
        }
    } else {
        let long = (length as u64).to_le_bytes();
        to.splice(at..=at, std::iter::once(0xff).chain(long));
    }
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

    /// An event at a time, which must not go back: what goes back is taken for the time before.
    pub(super) fn event(
        &mut self,
        time_ns: u64,
        to: &mut dyn std::io::Write,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> std::io::Result<()> {
        if self.chunk.len() + LONGEST_EVENT > EVENT_CHUNK {
            self.chunk.resize(EVENT_CHUNK, 0);
            self.write_out(to)?;
            self.begin();
        }
        let time_ns = self.time_ns.map_or(time_ns, |before| before.max(time_ns));
        if self.time_ns != Some(time_ns) {
            self.chunk.push(TIMESTAMP);
            self.chunk.extend_from_slice(&time_ns.to_le_bytes());
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
