//! How functions of a file keep their return addresses (.eh_frame, found through .eh_frame_hdr).

use std::ops::Range;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, FrameDescriptionEntry, Register, RegisterRule, UnwindContext,
    UnwindSection as _, UnwindTableRow, X86_64,
};
use mpiprobe_common::{LayerFrame, layer::layer_flags};
use mpiprobe_elf::constants::PT_GNU_EH_FRAME;

use super::{
    budget::{Budget, Slice},
    caught::caught,
    frame_index::FrameIndex,
    image::Image,
};

/// The largest tables that are read, in bytes; those of large programs have ten million.
const MAX_BYTES: u64 = 64 << 20;
/// Reads for one address: its function's rules are some hundred bytes.
const READS: u64 = 1 << 20;

/// The registers that a function leaves as they were, in the order of [`Registers`](super::unwind::Registers).
pub(super) const SAVED: [Register; 6] = [X86_64::RBX, X86_64::RBP, X86_64::R12, X86_64::R13, X86_64::R14, X86_64::R15];

/// The rules of one file.
#[derive(Debug)]
pub(super) struct CallFrames {
    index: FrameIndex,
    frames: EhFrame<Slice>,
    bases: BaseAddresses,
    budget: Arc<Budget>,
}

/// What holds at one instruction. The canonical frame address (CFA) is the stack pointer's value before the function's return
/// address was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallFrame {
    /// The register that the CFA is counted from, and how far it is, in bytes.
    pub(super) base: Register,
    pub(super) to_cfa: i64,
    /// Where the return address is, in bytes from the CFA: -8 but for hand-written code.
    pub(super) return_address: i64,
    /// What became of each of [`SAVED`].
    pub(super) saved: [Kept; 6],
}

/// Where the caller's value of a register is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    InPlace,
    /// In bytes from the CFA.
    OnStack(i64),
    Lost,
}

impl CallFrame {
    /// The same in short, where it is of the usual kind.
    pub(super) fn of_layer(&self) -> Option<LayerFrame> {
        let by = match self.base {
            X86_64::RSP => 0,
            X86_64::RBP => layer_flags::BY_FRAME_POINTER,
            _ => return None,
        };
        if self.return_address != -8 {
            return None;
        }
        let place = SAVED.iter().position(|register| *register == X86_64::RBP)?;
        let (to_frame_pointer, lost) = match self.saved.get(place)? {
            Kept::InPlace => (0, 0),
            Kept::OnStack(offset) => (*offset, 0),
            Kept::Lost => (0, layer_flags::FRAME_POINTER_LOST),
        };
        Some(LayerFrame { to_cfa: self.to_cfa, to_frame_pointer, flags: by | lost, question: 0 })
    }
}

impl CallFrames {
    pub(super) fn read(image: &Image) -> Option<Self> {
        let header = image.segments().of_kind(PT_GNU_EH_FRAME)?;
        let (address, size) = (header.address, header.memory_size);
        let read = |address, limit: u64| {
            let (offset, available) = image.segments().offset_of(address)?;
            let size = available.min(limit);
            image.bytes(offset, size).filter(|_| size <= MAX_BYTES)
        };
        let index = FrameIndex::parse(read(address, size)?, address)?;
        let budget = Arc::new(Budget::new(READS));
        let frames = EhFrame::from(Slice::new(read(index.frames, u64::MAX)?, Arc::clone(&budget)));
        let bases = BaseAddresses::default().set_eh_frame_hdr(address).set_eh_frame(index.frames);
        Some(Self { index, frames, bases, budget })
    }

    /// The address ranges of all functions that have rules, in ascending order of their starts.
    pub(super) fn functions(&self) -> impl Iterator<Item = Range<u64>> {
        self.index.rules().filter_map(|rules| {
            let description = self.description(rules)?;
            let start = description.initial_address();
            Some(start..start.checked_add(description.len())?)
        })
    }

    /// The address range of the function with rules that `address` belongs to.
    pub(super) fn function(&self, address: u64) -> Option<Range<u64>> {
        let description = self.description(self.index.find(address)?)?;
        let start = description.initial_address();
        let range = start..start.checked_add(description.len())?;
        range.contains(&address).then_some(range)
    }

    /// The rules for the instruction at `address`; `None` if there are none, or none as simple as compilers make them.
    pub(super) fn at(&self, address: u64) -> Option<CallFrame> {
        let description = self.description(self.index.find(address)?)?;
        guarded(|| {
            let mut context = UnwindContext::new();
            // Says so if the address is behind the end of the function.
            let row = description.unwind_info_for_address(&self.frames, &self.bases, &mut context, address)?;
            let &CfaRule::RegisterAndOffset { register: base, offset: to_cfa } = row.cfa() else { return Ok(None) };
            let Some(RegisterRule::Offset(return_address)) = row.register(X86_64::RA) else { return Ok(None) };
            let saved = SAVED.map(|register| match row.register(register) {
                None | Some(RegisterRule::SameValue) => Kept::InPlace,
                Some(RegisterRule::Offset(offset)) => Kept::OnStack(offset),
                Some(_) => Kept::Lost,
            });
            Ok(Some(CallFrame { base, to_cfa, return_address, saved }))
        })?
    }

    /// What is made of all the rules for the instruction at `address`.
    pub(super) fn with_row<T>(
        &self,
        address: u64,
        make: impl FnOnce(&FrameDescriptionEntry<Slice>, &UnwindTableRow<usize>, &EhFrame<Slice>) -> Option<T>,
    ) -> Option<T> {
        let description = self.description(self.index.find(address)?)?;
        guarded(|| {
            let mut context = UnwindContext::new();
            let row = description.unwind_info_for_address(&self.frames, &self.bases, &mut context, address)?;
            Ok(make(&description, row, &self.frames))
        })?
    }

    /// What stands at the address of a function's rules. Grants the reads for it and for what follows.
    fn description(&self, address: u64) -> Option<FrameDescriptionEntry<Slice>> {
        let offset = usize::try_from(address.checked_sub(self.index.frames)?).ok()?;
        self.budget.refill(READS);
        self.budget.enter();
        guarded(|| self.frames.fde_from_offset(&self.bases, EhFrameOffset(offset), EhFrame::cie_from_offset))
    }
}

/// A panic of the parser over hostile rules is as good as no rules.
fn guarded<T>(read: impl FnOnce() -> gimli::Result<T>) -> Option<T> {
    caught(read)?.ok()
}
