//! What agents say, line by line, and of which node.
//!
//! An agent that has others below it passes on what they say, with their numbers: `{"from":17,"line":…}`.

use mpiprobe_discover::printable;
use mpiprobe_model::{Profile, RecentCalls};
use mpiprobe_report::present::recording::{profile_of_json, value_of_json};
use mpiprobe_view::Stacks;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use crate::chunks::chunk_of;

/// Longest message of an agent, bytes.
const LONGEST_WORD: usize = 4 << 10;
/// What is before and behind the number of a node.
const FROM: &[u8] = b"{\"from\":";
const LINE: &[u8] = b",\"line\":";

/// What a line is taken for by whoever hears it.
pub(crate) trait Word: Sized + Send + 'static {
    fn understood(line: Vec<u8>) -> Result<Self, String>;
    fn nature(&self) -> Nature<'_>;
    /// Nothing more comes from that node.
    fn lost(why: String) -> Self;
}

/// What a line means for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature<'a> {
    /// The agent runs, and is of this version.
    Answered(&'a str),
    Lost,
    /// Nothing is to come after it.
    Last,
    Other,
}

/// What a node says. All text is printable.
#[derive(Debug)]
pub(crate) enum FromNode {
    /// The agent runs there, and is of this version.
    Answered {
        version: String,
    },
    Said(String),
    /// It has nothing to say, and says so from time to time.
    Alive,
    /// It observes, or waits.
    Begun,
    Profile(Box<Profile>),
    /// The next part of the node's trace.
    Chunk(Vec<u8>),
    /// What it has found by looking at stacks, as it says it.
    Found(Vec<u8>),
    /// Those of all threads, for a view.
    Stacks(Stacks),
    /// The last calls of each process, for a view.
    Recent(Vec<(u32, RecentCalls)>),
    /// The next message of what single calls are kept by, for a view; or why there are none.
    Calls(Vec<u8>),
    NoCalls(String),
    /// It has observed to the end.
    Ended,
    /// It does not observe. `is_absent`: there is nobody to be observed.
    Refused {
        why: String,
        is_absent: bool,
    },
    /// Nothing more comes, and nobody knows what happens there.
    Lost(String),
}

/// What is passed on as it is.
#[derive(Debug)]
pub(crate) struct Passed {
    line: Vec<u8>,
    head: Head,
}

/// What a line is, if it is no profile.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    version: Option<String>,
    said: Option<String>,
    failed: Option<String>,
    lost: Option<String>,
    absent: bool,
    ended: Option<bool>,
    begun: Option<bool>,
    alive: Option<bool>,
    schema: Option<String>,
    trace: Option<IgnoredAny>,
    calls: Option<IgnoredAny>,
    no_calls: Option<String>,
    found: Option<IgnoredAny>,
    stacks: Option<IgnoredAny>,
    recent: Option<IgnoredAny>,
}

impl Head {
    fn of(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| unknown(line, &error))
    }
}

/// A line with a part of a trace, or of single calls.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Chunk {
    Trace(String),
    Calls(String),
}

/// A line for a view.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shown {
    stacks: Option<Stacks>,
    recent: Option<Vec<(u32, RecentCalls)>>,
}

fn unknown(line: &[u8], why: &dyn std::fmt::Display) -> String {
    let begin = printable(line.get(..line.len().min(80)).unwrap_or_default());
    format!("it says what no agent of version {} says: {begin:?} ({why})", env!("CARGO_PKG_VERSION"))
}

impl Word for FromNode {
    fn understood(line: Vec<u8>) -> Result<Self, String> {
        let head = Head::of(&line)?;
        if head.found.is_some() {
            return Ok(Self::Found(line));
        }
        if head.stacks.is_some() || head.recent.is_some() {
            return match value_of_json(&line).map_err(|error| unknown(&line, &error))? {
                Shown { stacks: Some(stacks), .. } => Ok(Self::Stacks(stacks)),
                Shown { recent, .. } => Ok(Self::Recent(recent.unwrap_or_default())),
            };
        }
        if head.trace.is_some() || head.calls.is_some() {
            let bytes = |text: &str| chunk_of(text).map_err(|error| unknown(&line, &error));
            return match serde_json::from_slice(&line).map_err(|error| unknown(&line, &error))? {
                Chunk::Trace(text) => Ok(Self::Chunk(bytes(&text)?)),
                Chunk::Calls(text) => Ok(Self::Calls(bytes(&text)?)),
            };
        }
        if head.schema.is_some() {
            let profile = profile_of_json(line.as_slice()).map_err(|error| unknown(&line, &error))?;
            return Ok(Self::Profile(Box::new(profile)));
        }
        let text = |text: String| {
            let bytes = text.as_bytes();
            printable(bytes.get(..bytes.len().min(LONGEST_WORD)).unwrap_or_default()).replace("\\n", "\n")
        };
        Ok(match head {
            Head { failed: Some(why), absent, .. } => Self::Refused { why: text(why), is_absent: absent },
            Head { lost: Some(why), .. } => Self::Lost(text(why)),
            Head { ended: Some(_), .. } => Self::Ended,
            Head { begun: Some(_), .. } => Self::Begun,
            Head { alive: Some(_), .. } => Self::Alive,
            Head { version: Some(version), .. } => Self::Answered { version: text(version) },
            Head { said: Some(said), .. } => Self::Said(text(said)),
            Head { no_calls: Some(why), .. } => Self::NoCalls(text(why)),
            Head { .. } => return Err(unknown(&line, &"it means nothing")),
        })
    }

    fn nature(&self) -> Nature<'_> {
        match self {
            Self::Answered { version } => Nature::Answered(version),
            Self::Lost(_) => Nature::Lost,
            Self::Ended | Self::Refused { .. } => Nature::Last,
            Self::Said(_)
            | Self::Alive
            | Self::Begun
            | Self::Profile(_)
            | Self::Chunk(_)
            | Self::Found(_)
            | Self::Stacks(_)
            | Self::Recent(_)
            | Self::Calls(_)
            | Self::NoCalls(_) => Nature::Other,
        }
    }

    fn lost(why: String) -> Self {
        Self::Lost(why)
    }
}

impl Passed {
    /// The line that says it of a node, with its end.
    pub(crate) fn of(&self, number: usize) -> Vec<u8> {
        [FROM, number.to_string().as_bytes(), LINE, &self.line, b"}\n"].concat()
    }
}

impl Word for Passed {
    fn understood(line: Vec<u8>) -> Result<Self, String> {
        Ok(Self { head: Head::of(&line)?, line })
    }

    fn nature(&self) -> Nature<'_> {
        match &self.head {
            // Of these, only a profile's last one says anything of an end, and more comes after it.
            Head { schema: Some(_), .. } | Head { found: Some(_), .. } | Head { trace: Some(_), .. } => Nature::Other,
            Head { failed: Some(_), .. } => Nature::Last,
            Head { lost: Some(_), .. } => Nature::Lost,
            Head { ended: Some(_), .. } => Nature::Last,
            Head { version: Some(version), .. } => Nature::Answered(version),
            Head { .. } => Nature::Other,
        }
    }

    fn lost(why: String) -> Self {
        let line = json!({ "lost": why }).to_string().into_bytes();
        Self { line, head: Head { lost: Some(why), ..Head::default() } }
    }
}

/// Of which node a line is, if it is passed on, and what that one says.
pub(super) fn addressed(line: &[u8]) -> Option<(usize, &[u8])> {
    let rest = line.strip_prefix(FROM)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at_checked(digits)?;
    let said = rest.strip_prefix(LINE)?.strip_suffix(b"}")?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, said))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(line: &str) -> String {
        match FromNode::understood(line.as_bytes().to_vec()) {
            Ok(event) => format!("{event:?}"),
            Err(why) => why,
        }
    }

    #[test]
    fn what_agents_say() {
        assert_eq!(said(r#"{"observation":0,"version":"9.9"}"#), r#"Answered { version: "9.9" }"#);
        assert_eq!(said(r#"{"said":"a\u001b[2Jb"}"#), r#"Said("a\\u{1b}[2Jb")"#);
        assert_eq!(said(r#"{"begun":true}"#), "Begun");
        assert_eq!(said(r#"{"alive":true}"#), "Alive");
        assert_eq!(said(r#"{"ended":false}"#), "Ended");
        assert_eq!(said(r#"{"trace":"AAH/"}"#), "Chunk([0, 1, 255])");
        assert_eq!(said(r#"{"stacks":{"refused":"no \u001b[2J"}}"#), "Stacks(Refused(\"no \u{fffd}[2J\"))");
        assert_eq!(said(r#"{"recent":[]}"#), "Recent([])");
        assert_eq!(said(r#"{"calls":"AAH/"}"#), "Calls([0, 1, 255])");
        assert_eq!(said(r#"{"no_calls":"none \u001b"}"#), r#"NoCalls("none \\u{1b}")"#);
        assert_eq!(said(r#"{"lost":"no route"}"#), r#"Lost("no route")"#);
        assert_eq!(said(r#"{"failed":"nobody","absent":true}"#), r#"Refused { why: "nobody", is_absent: true }"#);
        for wrong in [
            "Welcome to n1!",
            "\u{1b}]0;x\u{7}",
            "{\"schema\":\"mpiprobe.profile/1\"}",
            "[]",
            "{\"said\":7}",
            "{\"trace\":\"?\"}",
            "{\"trace\":7}",
            "{\"stacks\":7}",
            "{\"recent\":[7]}",
            "{\"calls\":7}",
        ] {
            assert!(said(wrong).starts_with("it says what no agent of version"), "{wrong}: {}", said(wrong));
            assert!(!said(wrong).contains('\u{1b}'));
        }
    }

    #[test]
    fn what_is_passed_on_is_what_was_said() {
        for line in
            [r#"{"said":"{\"from\":1,\"line\":2}"}"#, r#"{"version":"9"}"#, r#"{"lost":"x"}"#, r#"{"ended":true}"#]
        {
            let passed = Passed::understood(line.into()).unwrap();
            let text = passed.of(17);
            let (number, inner) = addressed(text.strip_suffix(b"\n").unwrap()).unwrap();
            assert_eq!((number, inner), (17, line.as_bytes()));
            let heard = FromNode::understood(inner.to_vec()).unwrap();
            assert_eq!(passed.nature(), heard.nature(), "{line}");
        }
        let lost = Passed::lost("a\n\u{1b}b".into());
        let text = lost.of(3);
        assert!(text.starts_with(br#"{"from":3,"line":{"lost":"a\n\u001bb"}}"#) && lost.nature() == Nature::Lost);
        for none in [
            &b"{\"from\":,\"line\":1}"[..],
            b"{\"from\":1}",
            b"{\"from\":-1,\"line\":1}",
            b"",
            b"{\"from\":1,\"line\":1",
        ] {
            assert_eq!(addressed(none), None);
        }
    }

    proptest! {
        #[test]
        fn never_panics(line: Vec<u8>, text: String, number: usize) {
            let _ = FromNode::understood(line.clone());
            let _ = FromNode::understood(json!({ "said": text }).to_string().into_bytes());
            let _ = Passed::understood(line.clone());
            let _ = addressed(&[FROM, &line].concat());
            prop_assert!(addressed(&[FROM, number.to_string().as_bytes(), LINE, &line].concat()).is_none_or(|(it, _)| it == number));
        }
    }
}
