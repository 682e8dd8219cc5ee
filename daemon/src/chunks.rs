//! A chunk of a trace as a line of JSON: what the node service and agents say of a trace that somebody else writes.

use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD};

const BEGIN: &[u8] = b"{\"trace\":\"";
const END: &[u8] = b"\"}\n";

/// With its end.
pub(crate) fn line_of(chunk: &[u8]) -> Vec<u8> {
    [BEGIN, STANDARD.encode(chunk).as_bytes(), END].concat()
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
            let line = line_of(&chunk);
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
