//! How many functions of a library are cheap to probe.

use std::fmt;

use super::{Plan, SiteKind, SlowReason};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// Probed at their first instruction, which the kernel emulates.
    pub fast: usize,
    /// Probed at an emulated instruction after the first.
    pub moved: usize,
    /// Probed at their first instruction, which the kernel single-steps.
    pub slow: Vec<SlowFunction>,
    /// Not probed: the kernel would refuse.
    pub unprobeable: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowFunction {
    pub name: String,
    pub reason: SlowReason,
}

impl<K> Plan<K> {
    pub fn census(&self) -> Census {
        let mut census = Census { unprobeable: self.unprobeable.len(), ..Census::default() };
        for planned in &self.functions {
            match planned.site.kind {
                SiteKind::Fast => census.fast += 1,
                SiteKind::Moved { .. } => census.moved += 1,
                SiteKind::Slow { reason } => {
                    let name = planned.function.name().to_owned();
                    census.slow.push(SlowFunction { name, reason });
                }
            }
        }
        census
    }
}

impl Census {
    /// Functions in all.
    pub fn total(&self) -> usize {
        self.fast + self.moved + self.slow.len() + self.unprobeable
    }
}

/// `432 functions: 346 fast, 61 moved, 25 slow`
impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fast, moved, slow, unprobeable } = self;
        write!(f, "{} functions: {fast} fast, {moved} moved, {} slow", self.total(), slow.len())?;
        if *unprobeable > 0 {
            write!(f, ", {unprobeable} cannot be probed")?;
        }
        Ok(())
    }
}
