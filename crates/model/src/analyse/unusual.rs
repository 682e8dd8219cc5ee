//! Calls that take longer than one expects.

use crate::{FunctionRow, OpenCallInfo};

/// Shorter calls never stand out: people do not notice them.
const NOTICED_NS: u64 = 1_000_000_000;
/// How many times longer than almost all others of its function a call has to be.
const TIMES: u64 = 4;

/// Whether an open call takes unusually long, compared with the completed ones of its function over ranks.
pub fn is_unusually_long(call: &OpenCallInfo, function: Option<&FunctionRow>) -> bool {
    let usual_ns = function.filter(|function| function.calls > 0).map_or(0, |function| function.p99_ns);
    call.open_ns >= NOTICED_NS.max(usual_ns.saturating_mul(TIMES))
}
