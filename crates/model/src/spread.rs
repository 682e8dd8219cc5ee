//! A quantity over ranks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a quantity is spread over the ranks that were observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    pub sum: f64,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    /// Maximum over mean, minus one: by how much the slowest rank exceeds the average. 0 is perfectly even.
    pub imbalance: f64,
}

impl Spread {
    /// Of one value per rank; `None` without ranks.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut count = 0.0;
        let (mut sum, mut min, mut max) = (0.0, f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            count += 1.0;
            sum += value;
            min = f64::min(min, value);
            max = f64::max(max, value);
        }
        if count == 0.0 {
            return None;
        }
        let mean = sum / count;
        let imbalance = if mean > 0.0 { max / mean - 1.0 } else { 0.0 };
        Some(Self { sum, mean, min, max, imbalance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_rank_of_four() {
        let spread = Spread::of([1.0, 1.0, 1.0, 5.0]).unwrap();
        assert_eq!(spread, Spread { sum: 8.0, mean: 2.0, min: 1.0, max: 5.0, imbalance: 1.5 });
    }

    #[test]
    fn nothing_and_zeroes() {
        assert_eq!(Spread::of([]), None);
        assert!(Spread::of([0.0, 0.0]).unwrap().imbalance.abs() < f64::EPSILON);
    }
}
