//! Where in a program MPI was called.

use mpiprobe_discover::printable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A function in the source, and a line in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceFrame {
    /// Demangled, without parameters.
    pub function: Option<String>,
    /// The path as the compiler wrote it down.
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// One place that calls MPI, the same for all ranks that run the same file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallSite {
    /// `build-id:…`, or what else tells the file from others: the same text for the same file.
    pub module: String,
    /// The module's path in the process's file system, or a name in brackets: `[vdso]`, `[anonymous]`, `[unmapped]`.
    pub path: String,
    /// Whether the file had no name any more when it was looked at.
    pub deleted: bool,
    /// The return address in the module's own address space.
    pub offset: u64,
    /// The innermost function: the one whose source says the call.
    #[serde(flatten)]
    pub at: SourceFrame,
    /// Where the compiler has inlined that function, from the inside out; empty mostly.
    pub inlined: Vec<SourceFrame>,
    /// How far behind the start of its function the return address is, in bytes; known from symbol tables.
    pub function_offset: Option<u64>,
    /// All that in one line: `solve.f90:112 in step`, `step+0x1f in libsolve.so`, `libsolve.so+0x1234`.
    pub text: String,
}

impl CallSite {
    /// A place of which nothing is known but an address in something that `module` tells from others.
    #[must_use]
    pub fn unknown(module: String, offset: u64) -> Self {
        let site = Self {
            module,
            path: "[unknown]".to_owned(),
            deleted: false,
            offset,
            at: SourceFrame { function: None, file: None, line: None },
            inlined: Vec::new(),
            function_offset: None,
            text: String::new(),
        };
        site.with_text()
    }

    /// Writes `text` anew from the other fields.
    #[must_use]
    pub fn with_text(mut self) -> Self {
        self.text = self.describe();
        self
    }

    /// The same without anything that could steer a terminal: names come from files of other users.
    #[must_use]
    pub fn printable(mut self) -> Self {
        let clean = |text: &mut String| *text = printable(text.as_bytes());
        [&mut self.module, &mut self.path].into_iter().for_each(clean);
        for frame in std::iter::once(&mut self.at).chain(&mut self.inlined) {
            frame.function.iter_mut().chain(&mut frame.file).for_each(clean);
        }
        self.with_text()
    }

    fn describe(&self) -> String {
        let module = format!("{}{}", base_name(&self.path), if self.deleted { " (deleted)" } else { "" });
        let Some(place) = self.at.place() else {
            return match (&self.at.function, self.function_offset) {
                (Some(function), Some(offset)) => format!("{function}+{offset:#x} in {module}"),
                (Some(function), None) => format!("{function} in {module}"),
                (None, _) => format!("{module}+{:#x}", self.offset),
            };
        };
        let Some(function) = &self.at.function else { return format!("{place} in {module}") };
        let outermost = self.inlined.last().and_then(|frame| frame.function.as_ref());
        match outermost {
            Some(outer) => format!("{place} in {function}, inlined into {outer}"),
            None => format!("{place} in {function}"),
        }
    }
}

impl SourceFrame {
    /// File name and line, if both are known.
    fn place(&self) -> Option<String> {
        Some(format!("{}:{}", base_name(self.file.as_ref()?), self.line?))
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(function: Option<&str>, file: Option<&str>, line: Option<u32>) -> CallSite {
        let at = SourceFrame { function: function.map(Into::into), file: file.map(Into::into), line };
        CallSite {
            module: "build-id:01".into(),
            path: "/opt/lib/libsolve.so".into(),
            deleted: false,
            offset: 0x1234,
            at,
            inlined: Vec::new(),
            function_offset: None,
            text: String::new(),
        }
    }

    #[test]
    fn the_text_says_the_best_that_is_known() {
        let text = |site: CallSite| site.with_text().text;
        let full = site(Some("step"), Some("/home/a/solve.f90"), Some(112));
        assert_eq!(text(full.clone()), "solve.f90:112 in step");
        let main = SourceFrame { function: Some("main".into()), file: None, line: None };
        assert_eq!(text(CallSite { inlined: vec![main], ..full }), "solve.f90:112 in step, inlined into main");
        assert_eq!(text(site(None, Some("solve.c"), Some(3))), "solve.c:3 in libsolve.so");
        let symbol = site(Some("step"), None, None);
        assert_eq!(text(CallSite { function_offset: Some(0x1f), ..symbol }), "step+0x1f in libsolve.so");
        assert_eq!(text(site(None, Some("solve.c"), None)), "libsolve.so+0x1234");
        assert_eq!(text(CallSite { deleted: true, ..site(None, None, None) }), "libsolve.so (deleted)+0x1234");
        assert_eq!(text(CallSite { path: "[vdso]".into(), ..site(None, None, None) }), "[vdso]+0x1234");
    }
}
