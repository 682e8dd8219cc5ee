//! `/proc/PID/cmdline`: the arguments a process was started with.

use super::text::{base_name, printable};

/// A command line as exec(2) passed it, unless the process has overwritten it since.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    arguments: Vec<Vec<u8>>,
    truncated: bool,
}

impl CommandLine {
    /// At most this much is read, in bytes.
    pub const LIMIT: usize = 64 << 10;

    /// Parses the file's content; `truncated` says that it went on.
    pub fn parse(content: &[u8], truncated: bool) -> Self {
        let content = content.strip_suffix(b"\0").unwrap_or(content);
        let arguments = if content.is_empty() {
            Vec::new()
        } else {
            content.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
        };
        Self { arguments, truncated }
    }

    /// The arguments, the command itself first; empty for kernel threads and ended processes.
    pub fn arguments(&self) -> &[Vec<u8>] {
        &self.arguments
    }

    /// The base name of the command as it was called.
    pub fn command(&self) -> Option<&[u8]> {
        self.arguments.first().map(|argument| base_name(argument))
    }

    /// The value after `option`, or after `option=`.
    pub fn value_of(&self, option: &str) -> Option<&[u8]> {
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix(option.as_bytes()) {
                Some([]) => return arguments.next().map(Vec::as_slice),
                Some([b'=', value @ ..]) => return Some(value),
                _ => {}
            }
        }
        None
    }

    /// The script, or the module after `-m`, if `interpreter` (the executable's base name) is one that runs scripts.
    ///
    /// `python3 -u app.py ring` runs `app.py`: only the first argument that is no option counts.
    pub fn script(&self, interpreter: &[u8]) -> Option<&[u8]> {
        const INTERPRETERS: [&[u8]; 6] = [b"python", b"pypy", b"julia", b"ruby", b"perl", b"Rscript"];
        if !INTERPRETERS.iter().any(|known| interpreter.starts_with(known)) {
            return None;
        }
        let mut arguments = self.arguments.iter().skip(1);
        loop {
            match arguments.next()?.as_slice() {
                b"-m" => return arguments.next().map(Vec::as_slice),
                b"-c" | b"-e" => return None,
                b"-W" | b"-X" => {
                    arguments.next()?;
                }
                option if option.starts_with(b"-") => {}
                script => return Some(base_name(script)),
            }
        }
    }

    /// What a process of this command line and this executable (base name) may be called besides that.
    pub fn names(&self, executable: &[u8]) -> Vec<Vec<u8>> {
        [self.command(), self.script(executable)].into_iter().flatten().map(<[u8]>::to_vec).collect()
    }

    /// The command line for people, at most `limit` characters of it.
    pub fn display(&self, limit: usize) -> String {
        let joined = self.arguments.join(&b' ');
        let text = printable(joined.get(..limit.saturating_mul(4)).unwrap_or(&joined));
        if text.chars().count() <= limit && !self.truncated {
            return text;
        }
        text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &str) -> CommandLine {
        CommandLine::parse(text.replace(' ', "\0").as_bytes(), false)
    }

    #[test]
    fn arguments_may_be_empty() {
        assert_eq!(CommandLine::parse(b"a\0\0b\0", false).arguments(), [b"a".to_vec(), vec![], b"b".to_vec()]);
        assert!(CommandLine::parse(b"", false).arguments().is_empty());
    }

    #[test]
    fn options_are_found_in_both_forms() {
        let proxy = line("hydra_pmi_proxy --control-port vm:37367 --pgid=2 --last");
        assert_eq!(proxy.value_of("--control-port"), Some(b"vm:37367".as_slice()));
        assert_eq!(proxy.value_of("--pgid"), Some(b"2".as_slice()));
        assert_eq!(proxy.value_of("--last"), None);
        assert_eq!(proxy.value_of("--control"), None);
    }

    #[test]
    fn the_script_is_what_an_interpreter_runs() {
        assert_eq!(line("python3 -u /home/a/app.py ring").script(b"python3.11"), Some(b"app.py".as_slice()));
        assert_eq!(line("python3 -W ignore app.py").script(b"python3"), Some(b"app.py".as_slice()));
        assert_eq!(line("python3 -m pkg.main x").script(b"python3"), Some(b"pkg.main".as_slice()));
        assert_eq!(line("python3 -c pass app.py").script(b"python3"), None);
        assert_eq!(line("solver ring").script(b"solver"), None);
        assert_eq!(line("python3").script(b"python3"), None);
    }

    #[test]
    fn long_lines_are_cut_visibly() {
        assert_eq!(line("mpirun -n 4").display(11), "mpirun -n 4");
        assert_eq!(line("mpirun -n 4").display(8), "mpirun …");
        assert_eq!(CommandLine::parse(b"a\0b", true).display(8), "a b…");
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>, truncated: bool, limit in 0usize..100) {
            let line = CommandLine::parse(&bytes, truncated);
            prop_assert!(line.display(limit).chars().count() <= limit.max(1));
            let _ = (line.command(), line.script(b"python3"), line.value_of("-x"));
        }
    }
}
