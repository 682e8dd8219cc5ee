//! Conditions on which a comparison fails, such as `MPI_Allreduce > +10 %` (`--fail-if`).

use std::{fmt, str::FromStr};

use mpiprobe_functions::matches_pattern;
use thiserror::Error;

use super::{Comparison, Row, Section, Subject, Verdict};

/// `WHAT > CHANGE` or `WHAT < CHANGE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    section: Section,
    /// With `*` and `?`.
    pattern: String,
    /// In this rank, or group of ranks.
    ranks: Option<String>,
    is_above: bool,
    percent: f64,
}

/// What is wrong with the text of a condition.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConditionError {
    #[error("it needs a comparison: such as 'MPI_Allreduce > +10 %' or 'elapsed < -5 %'")]
    NoComparison,
    #[error(
        "before the comparison stands a function, elapsed, mpi, computing, or rank N, site PATTERN, comm NAME, phase NAME; a function may be \
         followed by 'in rank N'"
    )]
    NoSubject,
    #[error("{0:?} is no change in per cent: such as +10 %, -5 % or 2.5%")]
    NoChange(String),
    #[error("{0}: no run has anything that this could mean")]
    NothingMeant(String),
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub condition: String,
    pub subject: Subject,
    /// `None`: there was nothing of it before.
    pub change_percent: Option<f64>,
    /// Whether it is known to be no chance.
    pub is_sure: bool,
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let at = text.rfind(['<', '>']).ok_or(ConditionError::NoComparison)?;
        let (subject, change) = text.split_at_checked(at).ok_or(ConditionError::NoComparison)?;
        let is_above = change.starts_with('>');
        let change = change.get(1..).unwrap_or_default().trim();
        let number = change.strip_suffix('%').unwrap_or(change).trim_end();
        let percent = number.parse::<f64>().ok().filter(|percent| percent.is_finite());
        let percent = percent.ok_or_else(|| ConditionError::NoChange(change.into()))?;
        let (section, pattern, ranks) = meant(subject.trim()).ok_or(ConditionError::NoSubject)?;
        Ok(Self { text: text.trim().into(), section, pattern, ranks, is_above, percent })
    }
}

fn meant(subject: &str) -> Option<(Section, String, Option<String>)> {
    let is_given = |text: &str| !text.is_empty();
    if ["elapsed", "mpi", "computing"].contains(&subject) {
        return Some((Section::Whole, subject.into(), None));
    }
    if let Some((kind, name)) = subject.split_once(char::is_whitespace) {
        let name = Some(name.trim()).filter(|name| is_given(name))?;
        match kind {
            "rank" => return Some((Section::Ranks, "*".into(), Some(name.into()))),
            "site" => return Some((Section::CallSite, format!("*{name}*"), None)),
            "comm" => return Some((Section::Communicator, name.into(), None)),
            "phase" => return Some((Section::Phase, name.into(), None)),
            function => {
                let rank = name.strip_prefix("in ")?.trim_start().strip_prefix("rank")?.trim();
                return is_given(rank).then(|| (Section::FunctionInRanks, full(function), Some(rank.into())));
            }
        }
    }
    is_given(subject).then(|| (Section::Function, full(subject), None))
}

/// Functions may be named without `MPI_`, as everywhere.
fn full(name: &str) -> String {
    let has_prefix = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("mpi_"));
    if has_prefix || name.starts_with('*') { name.into() } else { format!("MPI_{name}") }
}

impl Condition {
    fn is_meant(&self, row: &Row) -> bool {
        let subject = &row.subject;
        subject.section == self.section
            && matches_pattern(&self.pattern, &subject.name)
            && self.ranks.as_ref().is_none_or(|ranks| subject.ranks.as_ref() == Some(ranks))
    }

    /// Of what it holds. A change that may be chance is none; where it is not known what is chance, the figures alone decide.
    pub fn held(&self, comparison: &Comparison) -> Result<Vec<Held>, ConditionError> {
        let mut meant = comparison.rows.iter().filter(|row| self.is_meant(row)).peekable();
        if meant.peek().is_none() {
            return Err(ConditionError::NothingMeant(self.text.clone()));
        }
        let holds = |row: &&Row| {
            let change = row.change_percent.unwrap_or(f64::INFINITY);
            let is_beyond = if self.is_above { change > self.percent } else { change < self.percent };
            is_beyond && (row.verdict.is_difference() || row.verdict == Verdict::Unknown)
        };
        let held = |row: &Row| Held {
            condition: self.text.clone(),
            subject: row.subject.clone(),
            change_percent: row.change_percent,
            is_sure: row.verdict.is_difference(),
        };
        Ok(meant.filter(holds).map(held).collect())
    }
}

impl fmt::Display for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "--fail-if '{}': {} ", self.condition, self.subject)?;
        match self.change_percent {
            Some(change) => write!(formatter, "changed by {change:+.1} %")?,
            None => formatter.write_str("was not there before")?,
        }
        if self.is_sure { Ok(()) } else { formatter.write_str("; whether that is chance is not known") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let read = |text: &str| {
            let Condition { section, pattern, ranks, is_above, percent, .. } = text.parse().unwrap();
            (section, pattern, ranks, is_above, percent)
        };
        let allreduce = || "MPI_Allreduce".to_owned();
        assert_eq!(read("MPI_Allreduce > +10 %"), (Section::Function, allreduce(), None, true, 10.0));
        assert_eq!(read("Allreduce>10%"), (Section::Function, allreduce(), None, true, 10.0));
        assert_eq!(
            read("Allreduce in rank 3 > 5"),
            (Section::FunctionInRanks, allreduce(), Some("3".into()), true, 5.0)
        );
        assert_eq!(read("elapsed < -2.5 %"), (Section::Whole, "elapsed".into(), None, false, -2.5));
        assert_eq!(read("rank 0-31 > 5%"), (Section::Ranks, "*".into(), Some("0-31".into()), true, 5.0));
        assert_eq!(read("site halo.c:91 > 5%"), (Section::CallSite, "*halo.c:91*".into(), None, true, 5.0));
        assert_eq!(read("phase main loop > 0 %"), (Section::Phase, "main loop".into(), None, true, 0.0));
        assert_eq!(read("comm row* > 5%"), (Section::Communicator, "row*".into(), None, true, 5.0));
    }

    #[test]
    fn what_is_none_is_refused() {
        let refused = |text: &str| text.parse::<Condition>().unwrap_err();
        assert_eq!(refused("MPI_Allreduce"), ConditionError::NoComparison);
        assert_eq!(refused(" > 10 %"), ConditionError::NoSubject);
        assert_eq!(refused("Send at 3 > 10 %"), ConditionError::NoSubject);
        assert_eq!(refused("rank > much"), ConditionError::NoChange("much".into()));
        for wrong in ["Send > nan", "Send > inf %", "Send > ", "Send > 10 % %", "Send >> "] {
            assert!(matches!(refused(wrong), ConditionError::NoChange(_)), "{wrong}");
        }
    }
}
