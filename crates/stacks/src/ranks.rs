//! Sets of ranks, and how they are written.

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who a thread belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Member {
    Rank(u32),
    /// A process whose rank is not known.
    Pid(u32),
}

impl Member {
    pub const fn is_rank(self) -> bool {
        matches!(self, Self::Rank(_))
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank(rank) => write!(f, "{rank}"),
            Self::Pid(pid) => write!(f, "pid {pid}"),
        }
    }
}

/// Ranks, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RankSet(BTreeSet<Member>);

impl RankSet {
    pub fn insert(&mut self, member: Member) {
        self.0.insert(member);
    }

    pub fn contains(&self, member: Member) -> bool {
        self.0.contains(&member)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        self.0.iter().copied()
    }
}

impl Extend<Member> for RankSet {
    fn extend<I: IntoIterator<Item = Member>>(&mut self, members: I) {
        self.0.extend(members);
    }
}

impl FromIterator<Member> for RankSet {
    fn from_iter<I: IntoIterator<Item = Member>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

/// In ranges: `0-3,7`, processes without a rank behind them: `0,pid 4711`.
impl fmt::Display for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranks = self.0.iter().filter_map(|member| match member {
            Member::Rank(rank) => Some(*rank),
            Member::Pid(_) => None,
        });
        let mut separator = "";
        let mut next = ranks.next();
        while let Some(first) = next {
            let mut last = first;
            next = ranks.next();
            while let Some(rank) = next.filter(|rank| last.checked_add(1) == Some(*rank)) {
                last = rank;
                next = ranks.next();
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                1 => write!(f, "{separator}{first},{last}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        for member in self.0.iter().filter(|member| matches!(member, Member::Pid(_))) {
            write!(f, "{separator}{member}")?;
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_written_as_ranges() {
        let text = |ranks: &[u32]| ranks.iter().map(|rank| Member::Rank(*rank)).collect::<RankSet>().to_string();
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[3]), "3");
        assert_eq!(text(&[3, 1, 0, 2, 7, 9, 10]), "0-3,7,9,10");
        assert_eq!(text(&[u32::MAX, u32::MAX - 1, u32::MAX - 2]), "4294967293-4294967295");
        let mut with_pid: RankSet = [Member::Pid(12), Member::Rank(4)].into_iter().collect();
        with_pid.insert(Member::Rank(4));
        assert_eq!((with_pid.to_string().as_str(), with_pid.len()), ("4,pid 12", 2));
    }
}
