//! Language layers between the program and MPI's C functions: what the programs need to find who has called the layer.
//!
//! A function of a layer keeps its own return address at a distance from the stack pointer that is the same for each call made
//! from one place. So from the return address of the C function one word of the stack leads to the next caller.

use bytemuck::{Pod, Zeroable};

use crate::Descriptor;

/// Layers that a call is followed through: `mpi_f08` on top of `mpif.h` are two.
pub const LAYER_DEPTH: usize = 3;

/// Pieces of code with layers in one process.
pub const LAYER_RANGES: usize = 8;

/// Default number of calls that all layers together can make.
pub const LAYER_CALLS: u32 = 1 << 17;

/// A piece of a process's code that a layer is in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct LayerRange {
    /// Return addresses of calls from here lie behind `start` and not behind `end`; both 0: nothing.
    pub start: u64,
    pub end: u64,
    /// What addresses in the process are higher by than those in the file.
    pub bias: u64,
    /// Number of the file, see [`call_key`].
    pub module: u64,
}

impl LayerRange {
    pub const NONE: Self = Self { start: 0, end: 0, bias: 0, module: 0 };
    /// Nothing is in it.
    pub const EMPTY: Self = Self { start: u64::MAX, ..Self::NONE };

    #[inline]
    pub const fn contains(&self, return_address: u64) -> bool {
        return_address > self.start && return_address <= self.end
    }
}

/// All of one process. Zeroed: not known yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ProcessLayers {
    /// From the first to the last, whatever is between: one comparison tells most calls from those of a layer. Of a process without
    /// any it is [`LayerRange::EMPTY`].
    pub around: LayerRange,
    pub ranges: [LayerRange; LAYER_RANGES],
}

/// The key of a call in the table of frames, by the file's number and the return address in the file.
#[inline]
pub const fn call_key(module: u64, offset: u64) -> u64 {
    module << 40 | offset
}

/// Return addresses that [`call_key`] has room for.
pub const MOST_OFFSET: u64 = (1 << 40) - 1;

/// Places of a process from which local questions are remembered.
pub const EARLY_QUERIES: usize = 32;

/// A local question asked before the layers of the process were known, in a word.
///
/// | bits  | meaning |
/// |-------|---------|
/// | 0–47  | return address |
/// | 48–59 | [`crate::Descriptor::question`] of the function |
/// | 60–63 | its [`crate::Descriptor::own_of_layers`] |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyQuery(pub u64);

impl EarlyQuery {
    const QUESTION: u32 = 48;
    const OWN: u32 = 60;

    #[inline]
    pub const fn new(return_address: u64, own_of_layers: u8, question: u16) -> Self {
        Self(
            return_address & ((1 << Self::QUESTION) - 1)
                | (question as u64) << Self::QUESTION
                | (own_of_layers as u64) << Self::OWN,
        )
    }

    #[inline]
    pub const fn return_address(self) -> u64 {
        self.0 & ((1 << Self::QUESTION) - 1)
    }

    #[inline]
    pub const fn question(self) -> u16 {
        (self.0 >> Self::QUESTION) as u16 & 0xfff
    }

    #[inline]
    pub const fn own_of_layers(self) -> u8 {
        (self.0 >> Self::OWN) as u8
    }
}

/// A call that a layer makes: whose it is, and how to get to the layer's caller.
///
/// The canonical frame address (CFA) is the stack pointer's value before the layer's return address was pushed: that address is
/// right below it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct LayerFrame {
    /// From the stack pointer after the return from the call, or from the frame pointer, to the CFA, bytes; 0: not known.
    pub to_cfa: i64,
    /// From the CFA to where the layer keeps its caller's frame pointer, bytes; 0: it has not touched it.
    pub to_frame_pointer: i64,
    /// [`layer_flags`], ORed.
    pub flags: u32,
    /// Which local question the layer's procedure is, as [`crate::Descriptor::question`]: it asks others on its own account. 0: it is none, or
    /// that does not tell.
    pub question: u32,
}

/// Bits of [`LayerFrame::flags`].
pub mod layer_flags {
    /// The CFA is counted from the frame pointer (RBP) instead of the stack pointer.
    pub const BY_FRAME_POINTER: u32 = 1 << 0;
    /// The caller's frame pointer is not kept.
    pub const FRAME_POINTER_LOST: u32 = 1 << 1;
    /// The layer converts handles here on its own account: the functions for that have no Fortran binding, so no program has asked.
    pub const OWN_CONVERSIONS: u8 = 1 << 2;
    /// It asks local questions on its own account: this is in a procedure that is no such question itself.
    pub const OWN_QUERIES: u8 = 1 << 3;
}

/// The C function whose Fortran binding a symbol is, or a part of it, without `MPI_` and in any case; `None` for other symbols.
///
/// Compilers and libraries export `mpi_send_`, `PMPI_SEND`, `mpi_send_f08ts_`, MPICH also `mpi_send_f08ts_large_` for counts of another kind
/// and `pmpir_send_f08ts_`, Open MPI `MPI_Send_f08` and, between such a procedure and the C function, `ompi_send_f`; MPICH has
/// `MPIR_Send_cdesc` and `MPIR_Send_large_cdesc` there.
pub fn bound_function(symbol: &[u8]) -> Option<&[u8]> {
    const FORTRAN: [&[u8]; 9] = [
        b"_f08ts_large_",
        b"_f08_large_",
        b"_f08ts_large",
        b"_f08_large",
        b"_f08ts_",
        b"_f08_",
        b"_f08ts",
        b"_f08",
        b"_f",
    ];
    const DESCRIBED: [&[u8]; 2] = [b"_large_cdesc", b"_cdesc"];
    const PLAIN: [&[u8]; 3] = [b"__", b"_", b""];
    if let Some(name) = symbol.strip_prefix(b"MPIR_") {
        return DESCRIBED.iter().find_map(|suffix| name.strip_suffix(*suffix));
    }
    if let Some(name) = symbol.strip_prefix(b"ompi_") {
        return name.strip_suffix(b"_f");
    }
    let symbol = symbol.strip_prefix(b"p").or_else(|| symbol.strip_prefix(b"P")).unwrap_or(symbol);
    if let Some(name) = symbol.strip_prefix(b"mpir_") {
        return FORTRAN.iter().find_map(|suffix| name.strip_suffix(*suffix)).filter(|name| !name.is_empty());
    }
    let name = symbol.strip_prefix(b"mpi_").or_else(|| symbol.strip_prefix(b"MPI_"))?;
    // In both cases without an addition it is the C function.
    let is_c_name = symbol.starts_with(b"MPI_") && name.iter().any(u8::is_ascii_lowercase);
    let without = |suffix: &&'static [u8]| name.strip_suffix(*suffix);
    let plain = || if is_c_name { None } else { PLAIN.iter().find_map(without) };
    FORTRAN.iter().find_map(without).or_else(plain).filter(|name| !name.is_empty())
}

/// What is known of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerFrame {
    pub return_address: u64,
    /// Its stack pointer after the return.
    pub stack_pointer: u64,
    /// `None`: not known.
    pub frame_pointer: Option<u64>,
}

impl LayerFrame {
    /// What a Fortran layer asks on its own account where one of its procedures calls, and no way out of it yet. `procedure`: of the function
    /// whose binding it is; `None`: not known.
    pub fn asked_by(procedure: Option<&Descriptor>) -> Self {
        let communicates = procedure.is_some_and(|function| function.own_of_layers == 0);
        let flags = layer_flags::OWN_CONVERSIONS | if communicates { layer_flags::OWN_QUERIES } else { 0 };
        let question = procedure.map_or(0, |function| function.question);
        Self { flags: flags.into(), question: question.into(), ..Self::default() }
    }

    /// Whether a local question is the layer's own here, and not the program's: by what the function's descriptor says of it.
    #[inline]
    pub const fn is_own(&self, own_of_layers: u8, question: u16) -> bool {
        let is_another =
            own_of_layers & layer_flags::OWN_QUERIES != 0 && self.question != 0 && self.question != question as u32;
        self.flags & own_of_layers as u32 != 0 || is_another
    }

    /// Whether any is.
    #[inline]
    pub const fn may_be_own(&self) -> bool {
        self.flags & (layer_flags::OWN_CONVERSIONS | layer_flags::OWN_QUERIES) as u32 != 0 || self.question != 0
    }

    /// The layer's caller. `word` reads a word of the stack. `None` if the way is not known.
    #[inline]
    pub fn caller(
        &self,
        stack_pointer: u64,
        frame_pointer: Option<u64>,
        word: impl Fn(u64) -> Option<u64>,
    ) -> Option<CallerFrame> {
        let base = if self.flags & layer_flags::BY_FRAME_POINTER == 0 { stack_pointer } else { frame_pointer? };
        let cfa = base.wrapping_add_signed(self.to_cfa);
        // The stack grows downwards: a caller's frame is above.
        if cfa <= stack_pointer {
            return None;
        }
        let return_address = word(cfa.wrapping_sub(8))?;
        let frame_pointer = if self.flags & layer_flags::FRAME_POINTER_LOST != 0 {
            None
        } else if self.to_frame_pointer == 0 {
            frame_pointer
        } else {
            word(cfa.wrapping_add_signed(self.to_frame_pointer))
        };
        Some(CallerFrame { return_address, stack_pointer: cfa, frame_pointer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [u64; 4] = [0x10, 0x11, 0x12, 0x13];

    fn word(address: u64) -> Option<u64> {
        WORDS.get(usize::try_from(address.checked_sub(0x1000)? / 8).ok()?).copied()
    }

    #[test]
    fn one_word_leads_to_the_caller() {
        let frame = LayerFrame { to_cfa: 16, ..LayerFrame::default() };
        let expected = CallerFrame { return_address: 0x11, stack_pointer: 0x1010, frame_pointer: Some(7) };
        assert_eq!(frame.caller(0x1000, Some(7), word), Some(expected));
        assert_eq!(frame.caller(0x1000, None, word), Some(CallerFrame { frame_pointer: None, ..expected }));
        assert_eq!(frame.caller(0x2000, Some(7), word), None);
    }

    #[test]
    fn early_queries_are_kept_as_they_are() {
        for own in [layer_flags::OWN_QUERIES, layer_flags::OWN_CONVERSIONS] {
            let query = EarlyQuery::new(0x7fff_1234_5678, own, 1024);
            assert_eq!(query.return_address(), 0x7fff_1234_5678);
            assert_eq!((query.own_of_layers(), query.question()), (own, 1024));
        }
    }

    #[test]
    fn a_procedure_that_is_a_question_asks_others_on_its_own_account() {
        let (queries, conversions) = (layer_flags::OWN_QUERIES, layer_flags::OWN_CONVERSIONS);
        let cart_rank = LayerFrame { flags: conversions.into(), question: 7, ..LayerFrame::default() };
        assert!(cart_rank.is_own(queries, 8) && cart_rank.is_own(conversions, 9) && cart_rank.may_be_own());
        // The question itself, and what is none.
        assert!(!cart_rank.is_own(queries, 7) && !cart_rank.is_own(0, 0));
        let function = Descriptor { own_of_layers: queries, question: 7, ..Descriptor::EMPTY };
        assert_eq!(LayerFrame::asked_by(Some(&function)), cart_rank);
        let given_up = LayerFrame { question: 0, ..cart_rank };
        assert_eq!(LayerFrame::asked_by(None), given_up);
        assert!(LayerFrame::asked_by(Some(&Descriptor::EMPTY)).is_own(queries, 7), "it communicates");
        assert!(!given_up.is_own(queries, 8) && !LayerFrame::default().may_be_own());
    }

    #[test]
    fn procedures_are_known_by_their_symbols() {
        let bound = |symbol: &'static str| bound_function(symbol.as_bytes()).and_then(|name| str::from_utf8(name).ok());
        for symbol in ["mpi_send", "mpi_send_", "pmpi_send__", "mpi_send_f08_", "pmpi_send_f08ts_", "ompi_send_f"] {
            assert_eq!(bound(symbol), Some("send"), "{symbol}");
        }
        for symbol in ["mpi_send_f08ts_large_", "mpi_send_f08_large", "pmpir_send_f08ts_", "pmpir_send_f08ts_large_"] {
            assert_eq!(bound(symbol), Some("send"), "{symbol}");
        }
        for symbol in ["MPI_Send_f08", "PMPI_Send_f", "MPIR_Send_cdesc", "MPIR_Send_large_cdesc"] {
            assert_eq!(bound(symbol), Some("Send"), "{symbol}");
        }
        assert_eq!(bound("PMPI_SEND"), Some("SEND"));
        for symbol in
            ["MPI_Send", "PMPI_Send", "ompi_send", "MPIR_Send", "pmpir_send", "mpir_f08_", "solve_", "mpi_", "", "p"]
        {
            assert_eq!(bound(symbol), None, "{symbol}");
        }
    }

    #[test]
    fn frame_pointers_are_followed() {
        let flags = layer_flags::BY_FRAME_POINTER;
        let frame = LayerFrame { to_cfa: 16, to_frame_pointer: -16, flags, question: 0 };
        let caller = frame.caller(0x1000, Some(0x1008), word).unwrap();
        assert_eq!(caller, CallerFrame { return_address: 0x12, stack_pointer: 0x1018, frame_pointer: Some(0x11) });
        assert_eq!(frame.caller(0x1000, None, word), None);
        // Below the frame that has called.
        assert_eq!(frame.caller(0x1018, Some(0x1008), word), None);
        let lost = LayerFrame { flags: flags | layer_flags::FRAME_POINTER_LOST, ..frame };
        assert_eq!(lost.caller(0x1000, Some(0x1008), word).unwrap().frame_pointer, None);
    }

    #[test]
    fn ranges_hold_return_addresses() {
        let range = LayerRange { start: 10, end: 20, ..LayerRange::NONE };
        assert_eq!([10, 11, 20, 21].map(|address| range.contains(address)), [false, true, true, false]);
        assert!(!LayerRange::NONE.contains(0));
        assert_ne!(call_key(1, 2), call_key(2, 1));
    }
}
