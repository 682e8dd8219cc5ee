//! What tests that failed have said: told once more at the end, where it is found among the output of thousands.

use std::fmt;

/// Tests of which it is told; of more, the number.
const MOST: usize = 20;
/// Of one test, the first lines.
const MOST_LINES: usize = 40;

/// What test programs have printed so far.
#[derive(Debug, Default)]
pub(super) struct Failures {
    told: Vec<Failure>,
    /// The lines that come are of the last one.
    is_open: bool,
}

#[derive(Debug)]
struct Failure {
    test: String,
    lines: Vec<String>,
    left_out: usize,
}

impl Failures {
    /// Adds one line of output. What a test has said stands under `---- openmpi::killed_rank ----`, or the same with `stdout`, until the next
    /// one, or the list of their names.
    pub(super) fn add(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(test) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" ----")) {
            let test = test.strip_suffix(" stdout").unwrap_or(test).to_owned();
            self.told.push(Failure { test, lines: Vec::new(), left_out: 0 });
            self.is_open = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.is_open = false;
        } else if let Some(failure) = self.told.last_mut().filter(|_| self.is_open && !line.is_empty()) {
            if failure.lines.len() < MOST_LINES {
                failure.lines.push(line.to_owned());
            } else {
                failure.left_out += 1;
            }
        }
    }

    /// Adds those of programs that have run beside these.
    pub(super) fn merge(&mut self, other: Self) {
        self.told.extend(other.told);
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Failure { test, lines, left_out } in self.told.iter().take(MOST) {
            writeln!(f, "---- {test} ----")?;
            lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
            if *left_out > 0 {
                writeln!(f, "({left_out} more above)")?;
            }
        }
        if self.told.len() > MOST {
            writeln!(f, "({} more that failed are above)", self.told.len() - MOST)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_once_more() {
        let mut failures = Failures::default();
        for line in [
            "test openmpi::one ... FAILED\n",
            "failures:\n",
            "\n",
            "---- openmpi::one ----\n",
            "the first\n",
            "\n",
            "---- model::two stdout ----\n",
            "thread 'two' panicked\n",
            "failures:\n",
            "    openmpi::one\n",
            "test result: FAILED. 1 passed; 2 failed\n",
            "times of 3 trials\n",
        ] {
            failures.add(line);
        }
        assert_eq!(
            failures.to_string(),
            "---- openmpi::one ----\nthe first\n---- model::two ----\nthread 'two' panicked\n"
        );
    }

    #[test]
    fn no_more_than_anybody_reads() {
        let mut failures = Failures::default();
        for test in 0..=MOST {
            failures.add(&format!("---- {test} ----"));
            (0..=MOST_LINES).for_each(|line| failures.add(&format!("line {line}")));
        }
        let told = failures.to_string();
        assert_eq!(told.lines().count(), MOST * (MOST_LINES + 2) + 1);
        assert!(told.contains("(1 more above)") && told.ends_with("(1 more that failed are above)\n"));
    }
}
