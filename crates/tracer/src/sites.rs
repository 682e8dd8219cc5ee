//! Call sites of which nothing is known but their address.

use mpiprobe_model::{CallSite, SourceFrame};

/// What is said of one until somebody has found out in which file it is.
pub(crate) fn unnamed(process: u32, address: u64) -> CallSite {
    let site = CallSite {
        module: format!("process:{process}"),
        path: "[unknown]".to_owned(),
        deleted: false,
        offset: address,
        at: SourceFrame { function: None, file: None, line: None },
        inlined: Vec::new(),
        function_offset: None,
        text: String::new(),
    };
    site.with_text()
}
