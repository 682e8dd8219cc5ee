//! Adds up the results of all test programs.

use std::fmt;

/// Tests of all programs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
}

impl Summary {
    /// Adds one line of output, if it is a result of libtest or of a harness that follows it:
    /// `test result: ok. 8 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
    pub(super) fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        // The words stand between blanks, full stops and semicolons, and around "ok" there may be colours.
        let words: Vec<&str> =
            result.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let [number, what] = pair else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match *what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;

    fn sum(lines: &[&str]) -> String {
        let mut summary = Summary::default();
        for line in lines {
            summary.add(line);
        }
        summary.to_string()
    }

    #[test]
    fn all_programs_are_added_up() {
        let output = [
            "running 9 tests\n",
            "test a ... ok\n",
            "test result: ok. 8 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            "test result: FAILED. 120 passed; 2 failed; 0 ignored; 3 measured; 40 filtered out; finished in 1.25s\n",
        ];
        assert_eq!(sum(&output), "128 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn colours_do_not_matter() {
        let line = "test result: \x1b[32mok\x1b(B\x1b[m. 5 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(sum(&[line]), "5 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn other_lines_are_not_results() {
        assert_eq!(
            sum(&["  test result: ok. 5 passed\n", "7 passed; 7 failed\n", ""]),
            "0 passed, 0 failed, 0 skipped"
        );
    }
}
