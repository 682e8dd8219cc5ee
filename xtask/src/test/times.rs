//! How long the trials of our own test programs take, and which take longest.

use std::fmt;

/// Of all programs together.
const SLOWEST: usize = 20;

/// What test programs have printed so far.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The one whose times are printed.
    program: String,
    /// Hundredths of a second.
    trials: Vec<(u64, String)>,
}

impl Times {
    /// Adds one line of output, if it is one of those that follow after `times of 302 trials of ebpf, the slowest first:`, such as
    /// `     7.99 s  openmpi::killed_rank`.
    pub(super) fn add(&mut self, line: &str) {
        if let Some((_, rest)) = line.strip_prefix("times of ").and_then(|rest| rest.split_once(" trials of ")) {
            rest.split(',').next().unwrap_or_default().clone_into(&mut self.program);
        } else if line.starts_with(' ')
            && !self.program.is_empty()
            && let Some((time, name)) = line.trim().split_once(" s  ")
            && let Some(hundredths) = hundredths(time)
        {
            self.trials.push((hundredths, format!("{} {name}", self.program)));
        } else {
            self.program.clear();
        }
    }

    /// Adds those of programs that have run beside these.
    pub(super) fn merge(&mut self, other: Self) {
        self.trials.extend(other.trials);
    }
}

fn hundredths(time: &str) -> Option<u64> {
    let (seconds, hundredths) = time.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok().filter(|_| hundredths.len() == 2)?)
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut trials: Vec<_> = self.trials.iter().collect();
        trials.sort_by(|one, other| other.cmp(one));
        trials.truncate(SLOWEST);
        writeln!(f, "the slowest of {} trials:", self.trials.len())?;
        for (hundredths, name) in trials {
            writeln!(f, "{:6}.{:02} s  {name}", hundredths / 100, hundredths % 100)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn the_slowest_of_all_programs_are_told() {
        let mut times = Times::default();
        for line in [
            "     3.00 s  this is no time of a trial\n",
            "times of 2 trials of ebpf, the slowest first:\n",
            "     7.99 s  openmpi::one\n",
            "     0.50 s  mpich::two\n",
            "\n",
            "     Running something else\n",
            "times of 1 trials of wrapper, the slowest first:\n",
            "    12.05 s  mpich::one\n",
        ] {
            times.add(line);
        }
        let shown = "the slowest of 3 trials:\n    12.05 s  wrapper mpich::one\n     7.99 s  ebpf openmpi::one\n     0.50 s  ebpf mpich::two\n";
        assert_eq!(times.to_string(), shown);
    }

    #[test]
    fn no_more_than_twenty() {
        let mut times = Times::default();
        times.add("times of 30 trials of ebpf, the slowest first:\n");
        (0..30).for_each(|number| times.add(&format!("     1.{number:02} s  trial\n")));
        assert_eq!(times.to_string().lines().count(), 21);
        assert!(times.to_string().contains(" 1.29 s") && !times.to_string().contains(" 1.09 s"));
    }
}
