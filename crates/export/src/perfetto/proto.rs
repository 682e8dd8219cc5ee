//! Protocol buffers, as far as a trace needs them, and the numbers of fields (`protos/perfetto/trace/` of Perfetto's sources).

/// Numbers of fields, by message.
pub(super) mod field {
    pub(crate) mod trace {
        pub(crate) const PACKET: u32 = 1;
    }
    pub(crate) mod packet {
        pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
        pub(crate) const TIMESTAMP: u32 = 8;
        pub(crate) const SEQUENCE: u32 = 10;
        pub(crate) const TRACK_EVENT: u32 = 11;
        pub(crate) const INTERNED_DATA: u32 = 12;
        pub(crate) const SEQUENCE_FLAGS: u32 = 13;
        pub(crate) const DEFAULTS: u32 = 59;
        pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
        pub(crate) const FIRST_ON_SEQUENCE: u32 = 87;
    }
    pub(crate) mod defaults {
        pub(crate) const TRACK_EVENT: u32 = 11;
    }
    pub(crate) mod event {
        pub(crate) const CATEGORY_IIDS: u32 = 3;
        pub(crate) const ANNOTATIONS: u32 = 4;
        pub(crate) const TYPE: u32 = 9;
        pub(crate) const NAME_IID: u32 = 10;
        pub(crate) const TRACK_UUID: u32 = 11;
        pub(crate) const NAME: u32 = 23;
        pub(crate) const SOURCE_LOCATION_IID: u32 = 34;
        pub(crate) const FLOW_IDS: u32 = 47;
        pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
    }
    pub(crate) mod annotation {
        pub(crate) const NAME_IID: u32 = 1;
        pub(crate) const UINT: u32 = 3;
        pub(crate) const INT: u32 = 4;
        pub(crate) const TEXT: u32 = 6;
        pub(crate) const TEXT_IID: u32 = 17;
    }
    pub(crate) mod interned {
        pub(crate) const CATEGORIES: u32 = 1;
        pub(crate) const NAMES: u32 = 2;
        pub(crate) const ANNOTATION_NAMES: u32 = 3;
        pub(crate) const SOURCE_LOCATIONS: u32 = 4;
        pub(crate) const TEXTS: u32 = 29;
        /// Of each: its number, and what it is.
        pub(crate) const IID: u32 = 1;
        pub(crate) const VALUE: u32 = 2;
        pub(crate) const FUNCTION: u32 = 3;
        pub(crate) const LINE: u32 = 4;
    }
    pub(crate) mod track {
        pub(crate) const UUID: u32 = 1;
        pub(crate) const NAME: u32 = 2;
        pub(crate) const PROCESS: u32 = 3;
        pub(crate) const THREAD: u32 = 4;
        pub(crate) const PARENT: u32 = 5;
        pub(crate) const CHILD_ORDERING: u32 = 11;
        pub(crate) const RANK: u32 = 12;
        pub(crate) const DESCRIPTION: u32 = 14;
        pub(crate) const PROCESS_ORDERING: u32 = 19;
        pub(crate) const THREAD_ORDERING: u32 = 20;
    }
    pub(crate) mod process {
        pub(crate) const PID: u32 = 1;
        pub(crate) const NAME: u32 = 6;
        pub(crate) const LABELS: u32 = 8;
    }
    pub(crate) mod thread {
        pub(crate) const PID: u32 = 1;
        pub(crate) const TID: u32 = 2;
        pub(crate) const NAME: u32 = 5;
    }
    pub(crate) mod clocks {
        pub(crate) const CLOCKS: u32 = 1;
        pub(crate) const ID: u32 = 1;
        pub(crate) const TIMESTAMP: u32 = 2;
    }
}

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint((field << 3 | wire).into());
    }

    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    pub(super) fn int(&mut self, field: u32, value: i64) {
        self.number(field, value.cast_unsigned());
    }

    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A message inside. Nearly all are shorter than 128 bytes, and need no room to be made for their length.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.key(field, 2);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        let length = self.0.len() - at - 1;
        match u8::try_from(length) {
            Ok(short) if short < 0x80 => {
                if let Some(place) = self.0.get_mut(at) {
                    *place = short;
                }
            }
            _ => {
                let mut long = Self::default();
                long.varint(length as u64);
                self.0.splice(at..=at, long.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_what_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.message(3, |inner| inner.text(2, "abc"));
        message.fixed(4, 1);
        message.int(5, -1);
        let mut expected = vec![8, 0x96, 1, 0x1a, 5, 0x12, 3, b'a', b'b', b'c', 0x21, 1, 0, 0, 0, 0, 0, 0, 0, 0x28];
        expected.extend([0xff; 9]);
        expected.push(1);
        assert_eq!(message.0, expected);
        let mut long = Message::default();
        long.message(1, |inner| inner.bytes(1, &[7; 200]));
        assert_eq!(long.0.get(..6), Some([0x0a, 0xcb, 1, 0x0a, 0xc8, 1].as_slice()));
        assert_eq!(long.0.len(), 3 + 203);
    }
}
