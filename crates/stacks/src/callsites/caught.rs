//! Panics that cost what was asked for, and nothing else: those of other people's parsers over hostile files above all.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// `None` if it panics. Nothing that `work` has changed may be used then.
pub fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    IS_CAUGHT.set(before);
    done
}

/// Whether a panic on this thread is expected at this moment, and nobody is to be told by a panic hook.
pub fn is_caught() -> bool {
    IS_CAUGHT.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_expected_within_only() {
        assert!(!is_caught());
        assert_eq!(caught(|| caught(is_caught).is_some_and(|inner| inner) && is_caught()), Some(true));
        assert_eq!(caught(|| assert!(!is_caught())), None);
        assert!(!is_caught());
    }
}
