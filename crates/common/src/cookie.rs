//! What the kernel hands to the programs with each hit of a probe.

use crate::thread::REGISTER_ARGUMENTS;

/// A probe's cookie: which function it is, and the little about it that the programs need at once, so that they need not
/// look it up.
///
/// | bits  | meaning |
/// |-------|---------|
/// | 0–9   | function id |
/// | 10–12 | arguments on the stack |
/// | 13    | local question |
/// | 14    | brief |
/// | 15    | beginning |
/// | 16–31 | size of the file up to the end of the probes' segment, in pages; all ones: more than that |
/// | 32–63 | offset of the probe in its file, bytes |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub u64);

const FUNCTION_MASK: u64 = (1 << 10) - 1;
const STACK_SHIFT: u32 = 10;
const STACK_MASK: u64 = (1 << 3) - 1;
const QUERY: u64 = 1 << 13;
const BRIEF: u64 = 1 << 14;
const BEGINNING: u64 = 1 << 15;
const PAGES_SHIFT: u32 = 16;
const PAGES_MASK: u64 = (1 << 16) - 1;
const PAGE_SHIFT: u32 = 12;
const OFFSET_SHIFT: u32 = 32;

impl Cookie {
    /// Of a function by its id, its number of arguments, and whether it is brief (see [`Self::is_brief`]).
    pub const fn new(function: u32, arguments: u8, brief: bool) -> Self {
        let on_stack = (arguments as usize).saturating_sub(REGISTER_ARGUMENTS) as u64;
        let brief = if brief { BRIEF } else { 0 };
        Self(function as u64 & FUNCTION_MASK | (on_stack & STACK_MASK) << STACK_SHIFT | brief)
    }

    /// Of a local question, which language layers ask on their own account, too.
    #[must_use]
    pub const fn of_query(self) -> Self {
        Self(self.0 | QUERY)
    }

    /// Of a function by which a process begins to use MPI.
    #[must_use]
    pub const fn of_beginning(self) -> Self {
        Self(self.0 | BEGINNING)
    }

    /// At a place in a file whose code ends at `text_end` (bytes, both). An offset beyond 4 GiB is not told.
    #[must_use]
    pub const fn at(self, offset: u64, text_end: u64) -> Self {
        let pages = text_end.div_ceil(1 << PAGE_SHIFT);
        let pages = if pages > PAGES_MASK { PAGES_MASK } else { pages };
        let offset = if offset > u32::MAX as u64 { 0 } else { offset };
        Self(self.0 & ((1 << PAGES_SHIFT) - 1) | pages << PAGES_SHIFT | offset << OFFSET_SHIFT)
    }

    /// Function id.
    #[inline]
    pub const fn function(self) -> u32 {
        (self.0 & FUNCTION_MASK) as u32
    }

    /// How many arguments are on the stack, behind the return address.
    #[inline]
    pub const fn stack_arguments(self) -> u64 {
        self.0 >> STACK_SHIFT & STACK_MASK
    }

    /// Whether a call needs nothing read from the stack at its entry: all arguments are in registers, and as the function
    /// never waits, it is early enough to know the call site when it returns.
    #[inline]
    pub const fn is_brief(self) -> bool {
        self.0 & BRIEF != 0
    }

    /// Whether the call may be a language layer's own.
    #[inline]
    pub const fn is_query(self) -> bool {
        self.0 & QUERY != 0
    }

    /// Whether a process begins to use MPI by it.
    #[inline]
    pub const fn is_beginning(self) -> bool {
        self.0 & BEGINNING != 0
    }

    /// Bytes of the file up to the end of its code; `u64::MAX` if they are too many to be told.
    #[inline]
    pub const fn text_end(self) -> u64 {
        let pages = self.0 >> PAGES_SHIFT & PAGES_MASK;
        if pages == PAGES_MASK { u64::MAX } else { pages << PAGE_SHIFT }
    }

    /// Where the probe is in its file, bytes; 0 if that is not told.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.0 >> OFFSET_SHIFT
    }
}

/// Longest argument list of an MPI function (`MPI_Dist_graph_create_adjacent` and kin have 10 to 13).
const MAX_ARGUMENTS: usize = 13;

const _: () = assert!(
    (MAX_ARGUMENTS - REGISTER_ARGUMENTS) as u64 <= STACK_MASK && crate::FUNCTION_SLOTS as u64 == FUNCTION_MASK + 1
);

#[cfg(test)]
mod tests {
    use super::Cookie;

    fn parts(cookie: Cookie) -> (u32, u64, bool, u64, u64) {
        (cookie.function(), cookie.stack_arguments(), cookie.is_brief(), cookie.offset(), cookie.text_end())
    }

    #[test]
    fn parts_are_told_apart() {
        assert_eq!(parts(Cookie::new(1023, 13, false)), (1023, 7, false, 0, 0));
        assert_eq!(parts(Cookie::new(7, 6, true)), (7, 0, true, 0, 0));
        let placed = Cookie::new(700, 7, true).at(0x0123_4567, 0x0234_5678);
        assert_eq!(parts(placed), (700, 1, true, 0x0123_4567, 0x0234_6000));
        assert!(!placed.is_query() && !placed.is_beginning());
        let query = Cookie::new(700, 13, false).of_query().at(0x0123_4567, 0x0234_5678);
        assert_eq!(parts(query), (700, 7, false, 0x0123_4567, 0x0234_6000));
        assert!(query.is_query() && !query.is_beginning());
        let beginning = Cookie::new(700, 7, true).of_beginning().at(0x0123_4567, 0x0234_5678);
        assert_eq!((parts(beginning), beginning.is_beginning()), (parts(placed), true));
    }

    #[test]
    fn what_does_not_fit_is_not_told() {
        let placed = Cookie::new(1, 1, false).at(1 << 32, 1 << 40);
        assert_eq!(parts(placed), (1, 0, false, 0, u64::MAX));
    }
}
