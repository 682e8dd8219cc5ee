//! Bytes as a line of JSON: what the node service and agents say of a trace that somebody else writes, or looks at.

use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD};

/// What they are: the next ones of a trace, or the next message of what single calls are kept by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    Trace,
    Calls,
}

/// With its end.
pub(crate) fn line_of(what: Bytes, bytes: &[u8]) -> Vec<u8> {
    let begin: &[u8] = match what {
        Bytes::Trace => b"{\"trace\":\"",
        Bytes::Calls => b"{\"calls\":\"",
    };
    [begin, STANDARD.encode(bytes).as_bytes(), b"\"}\n"].concat()
}

/// From what stands in the line.
pub(crate) fn chunk_of(text: &str) -> Result<Vec<u8>, DecodeError> {
    STANDARD.decode(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_chunk_arrives_as_it_was(chunk: Vec<u8>) {
            let line = line_of(Bytes::Trace, &chunk);
            prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            let said: serde_json::Value = serde_json::from_slice(&line).unwrap();
            prop_assert_eq!(chunk_of(said["trace"].as_str().unwrap()), Ok(chunk));
        }

        #[test]
        fn anything_may_stand_there(text: String) {
            let _ = chunk_of(&text);
        }
    }
}
