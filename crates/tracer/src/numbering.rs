//! In which order a thread's calls come, and which are missing.

/// What a line says of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is the next one.
    Now,
    /// Others come before it, which may be in a ring that was looked at earlier.
    Later,
    /// It was not waited for any longer.
    TooLate,
    /// The thread that had this id before has ended.
    OtherThread,
}

/// A thread's numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbering {
    /// Of the next call; `None`: the first one that is seen.
    next: Option<u64>,
    /// Numbers that have been passed over.
    missing: u64,
    /// None comes after a later one.
    is_in_order: bool,
}

impl Numbering {
    /// `is_from_first`: the thread's first call would have been seen. `is_in_order`: what is missing before one that is seen comes no more.
    pub(crate) fn new(is_from_first: bool, is_in_order: bool) -> Self {
        Self { next: is_from_first.then_some(0), missing: 0, is_in_order }
    }

    /// A number of which the low half is known.
    pub(crate) fn whole(&self, low: u32) -> u64 {
        let next = self.next.unwrap_or(u64::from(low));
        let difference = low.wrapping_sub(low_half(next)).cast_signed();
        next.saturating_add_signed(difference.into())
    }

    /// `is_after`: the call began after all that were seen of the thread.
    pub(crate) fn turn(&self, low: u32, is_after: bool) -> Turn {
        let ahead = if self.is_in_order { Turn::Now } else { Turn::Later };
        let Some(next) = self.next else { return ahead };
        match low.wrapping_sub(low_half(next)).cast_signed() {
            0 => Turn::Now,
            1.. => ahead,
            _ if is_after => Turn::OtherThread,
            _ => Turn::TooLate,
        }
    }

    /// The call of a number comes now, whatever is missing before it.
    pub(crate) fn pass(&mut self, number: u64) {
        if let Some(next) = self.next {
            self.missing = self.missing.saturating_add(number.saturating_sub(next));
        }
        self.next = Some(number.saturating_add(1));
    }

    /// Whether the call of this number is the next one.
    pub(crate) fn is_next(&self, number: u64) -> bool {
        self.is_in_order || self.next == Some(number)
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.next.is_some()
    }

    /// The thread has made so many calls in all: the last of them may be missing.
    pub(crate) fn conclude(&mut self, calls: u64) {
        if let Some(next) = self.next.filter(|&next| next < calls) {
            self.missing = self.missing.saturating_add(calls - next);
            self.next = Some(calls);
        }
    }

    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }
}

#[expect(clippy::cast_possible_truncation, reason = "that half")]
fn low_half(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_beyond_what_a_line_has_room_for() {
        let mut numbering = Numbering::new(true, false);
        numbering.pass(u64::from(u32::MAX) - 1);
        assert_eq!((numbering.turn(u32::MAX, true), numbering.whole(u32::MAX)), (Turn::Now, u64::from(u32::MAX)));
        assert_eq!(numbering.whole(2), (1 << 32) + 2);
        assert_eq!(numbering.whole(u32::MAX - 1), u64::from(u32::MAX) - 1);
    }

    #[test]
    fn what_is_missing_is_counted() {
        let mut numbering = Numbering::new(true, false);
        assert_eq!(numbering.turn(3, true), Turn::Later);
        numbering.pass(3);
        assert!(numbering.is_next(4));
        numbering.pass(4);
        numbering.conclude(10);
        assert_eq!(numbering.missing(), 3 + 5);
        numbering.conclude(10);
        assert_eq!(numbering.missing(), 8);
    }

    #[test]
    fn what_was_before_the_first_that_is_seen_is_not_missing() {
        let mut numbering = Numbering::new(false, false);
        assert_eq!((numbering.turn(7, true), numbering.has_begun()), (Turn::Later, false));
        numbering.pass(7);
        assert_eq!((numbering.missing(), numbering.turn(8, true)), (0, Turn::Now));
        numbering.conclude(9);
        assert_eq!(numbering.missing(), 1);
    }

    #[test]
    fn a_thread_that_begins_again_is_another_one() {
        let mut numbering = Numbering::new(true, false);
        numbering.pass(99);
        assert_eq!((numbering.turn(0, true), numbering.turn(98, false)), (Turn::OtherThread, Turn::TooLate));
    }
}
