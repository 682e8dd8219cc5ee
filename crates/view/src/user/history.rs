//! Filters that were typed before.

use mpiprobe_model::filter::Filter;

/// More are not kept.
const MOST: usize = 500;
/// Bytes of the longest one that is kept.
const LONGEST: usize = 4096;

/// Each once, the latest last; all on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(Vec<String>);

impl History {
    /// From the text of a file: what is no filter any more is left out.
    pub fn of_text(text: &str) -> Self {
        let mut history = Self::default();
        for line in text.lines().filter(|line| line.len() <= LONGEST) {
            if let Ok(filter) = line.parse::<Filter>() {
                history.add(filter.line());
            }
        }
        history
    }

    pub fn to_text(&self) -> String {
        self.0.iter().flat_map(|line| [line, "\n"]).collect()
    }

    pub fn add(&mut self, line: &str) {
        if line.is_empty() || line.len() > LONGEST {
            return;
        }
        self.0.retain(|known| known != line);
        self.0.push(line.to_owned());
        let too_many = self.0.len().saturating_sub(MOST);
        self.0.drain(..too_many);
    }

    /// The one so many steps back; 1 is the latest.
    pub fn back(&self, steps: usize) -> Option<&str> {
        self.0.len().checked_sub(steps).and_then(|index| self.0.get(index)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_kept_once_and_the_latest_last() {
        let history = History::of_text("rank == 1\n\nbyts > 1\nrank == 2\nrank == 1\n");
        assert_eq!(history.to_text(), "rank == 2\nrank == 1\n");
        assert_eq!(history.back(1), Some("rank == 1"));
        assert_eq!(history.back(2), Some("rank == 2"));
        assert_eq!(history.back(3), None);
        assert_eq!(history.back(0), None);
        assert_eq!(History::of_text(&history.to_text()), history);
    }

    #[test]
    fn it_does_not_grow_for_ever() {
        let mut history = History::default();
        (0..2 * MOST).for_each(|rank| history.add(&format!("rank == {rank}")));
        assert_eq!(history.0.len(), MOST);
        assert_eq!(history.back(MOST), Some(format!("rank == {MOST}").as_str()));
        history.add(&"x".repeat(LONGEST + 1));
        assert_eq!(history.back(1), Some(format!("rank == {}", 2 * MOST - 1).as_str()));
    }
}
