//! Debug information of one file, looked up by address.

use std::sync::Arc;

use gimli::{AbbreviationsCacheStrategy, DwarfFileType, SectionId};
use mpiprobe_discover::printable;
use mpiprobe_elf::limits::MAX_SECTION;
use mpiprobe_model::SourceFrame;

use super::{
    budget::{Budget, Slice},
    demangle::function_name,
    image::Image,
};

/// Inlined functions around one address; the deepest seen in C++ are some thirty.
const MAX_FRAMES: usize = 64;

/// Of all sections of debug information of one file together, decompressed, in bytes.
const MAX_BYTES: u64 = 2 * MAX_SECTION;

/// Reads that a file's debug information may take in all.
///
/// An index of the units takes one for some thirty bytes, two hundred places all over a large program one more for ten. A hundred
/// million take about a second, and at worst some GB of memory: every other one can add an entry to a list.
fn reads_for(bytes: u64) -> u64 {
    ((4 << 20) + bytes / 2).min(128 << 20)
}

pub(super) struct Dwarf {
    context: addr2line::Context<Slice>,
    budget: Arc<Budget>,
    bytes: u64,
}

impl Dwarf {
    /// Reads what is needed for functions and lines from `image`, and what it refers to from `supplement` (dwz).
    ///
    /// `None` if there is no debug information, or it is damaged.
    pub(super) fn read(image: &Image, supplement: Option<&Image>) -> Option<Self> {
        if !Self::has(image) {
            return None;
        }
        let mut bytes = 0;
        let main = contents(image, &mut bytes)?;
        let supplement = supplement.and_then(|supplement| contents(supplement, &mut bytes));
        let budget = Arc::new(Budget::new(reads_for(bytes)));
        budget.enter();
        let mut dwarf = sections(main, &budget);
        if let Some(supplement) = supplement {
            let mut supplement = sections(supplement, &budget);
            supplement.file_type = DwarfFileType::Main;
            supplement.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
            dwarf.set_sup(supplement);
        }
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Self { context, budget, bytes })
    }

    pub(super) fn has(image: &Image) -> bool {
        image.has_section(".debug_info")
    }

    /// Reads that remain of the budget, and what it was.
    #[cfg(test)]
    pub(super) fn budget(&self) -> (u64, u64) {
        (self.budget.left(), reads_for(self.bytes))
    }

    /// What the sections take of memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The functions and lines of the instruction at `address`, from the inside out; empty if nothing is known.
    pub(super) fn find(&self, address: u64) -> Vec<SourceFrame> {
        self.budget.enter();
        let mut found = Vec::new();
        // Split debug information (.dwo) is not looked for: of such files, only lines are known.
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(|function| {
                let name = function.raw_name().ok()?;
                Some(function_name(name.as_bytes(), function.language)).filter(|name| !name.is_empty())
            });
            let location = frame.location.as_ref();
            found.push(SourceFrame {
                function,
                file: location.and_then(|location| location.file).map(|file| printable(file.as_bytes())),
                line: location.and_then(|location| location.line).filter(|&line| line > 0),
            });
            if found.len() == MAX_FRAMES {
                break;
            }
        }
        found
    }
}

/// The sections that are needed, and their size added to `bytes`; `None` if that gets too much.
fn contents(image: &Image, bytes: &mut u64) -> Option<Vec<(SectionId, Vec<u8>)>> {
    let mut contents = Vec::new();
    for id in NEEDED.into_iter().filter(|id| image.has_section(id.name())) {
        let content = image.section(id.name(), MAX_BYTES - *bytes)?;
        *bytes += content.len() as u64;
        contents.push((id, content));
    }
    Some(contents)
}

fn sections(mut contents: Vec<(SectionId, Vec<u8>)>, budget: &Arc<Budget>) -> gimli::Dwarf<Slice> {
    let load = |id| {
        let content = contents.iter_mut().find(|(there, _)| *there == id).map(|(_, content)| std::mem::take(content));
        Ok::<_, std::convert::Infallible>(Slice::new(content.unwrap_or_default(), Arc::clone(budget)))
    };
    match gimli::Dwarf::load(load) {
        Ok(dwarf) => dwarf,
    }
}

/// What is there to find functions and lines; the largest sections, of variables and macros, are not.
const NEEDED: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];
