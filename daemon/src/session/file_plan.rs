//! What of a file that a process has mapped can be probed.

use mpiprobe_attach::ProbeSite;
use mpiprobe_discover::{ForeignFile, Process, mappings::MappedFile, open_mapped};
use mpiprobe_functions::FunctionId;
use mpiprobe_model::SlowSite;
use mpiprobe_plan::{
    Difference, ElfFile, Implementation, Library, Plan, PlannedFunction, SiteKind, compare_code, plan,
};

use super::probe_error::ProbeError;

/// A file's functions, and where to probe them.
#[derive(Debug)]
pub(super) struct FilePlan {
    /// The very file that is, or will be, mapped.
    pub(super) file: ForeignFile,
    pub(super) path: String,
    pub(super) implementation: String,
    pub(super) build_id: Option<String>,
    plan: Plan<FunctionId>,
    /// Functions that were wanted and cannot be probed.
    pub(super) not_probed: Vec<String>,
    /// Functions at which there are probes already.
    breakpoints: usize,
}

impl FilePlan {
    /// Looks for the functions that `wanted` knows by their names.
    pub(super) fn of(
        process: &Process,
        mapped: &MappedFile,
        wanted: impl Fn(&str) -> Option<FunctionId>,
    ) -> Result<Self, ProbeError> {
        let mut file_plan = Self::of_file(open_mapped(process, mapped)?, mapped.display_path(), wanted)?;
        file_plan.remove_patched(process, mapped)?;
        Ok(file_plan)
    }

    /// The same of a file that no process need have mapped.
    pub(super) fn of_file(
        file: ForeignFile,
        path: String,
        wanted: impl Fn(&str) -> Option<FunctionId>,
    ) -> Result<Self, ProbeError> {
        let unread = |source| ProbeError::Read { path: path.clone(), source };
        let elf = |source| ProbeError::Elf { path: path.clone(), source };
        let contents = ElfFile::new(&file).map_err(unread)?;
        let library = Library::read(&contents).map_err(elf)?;
        let plan = plan(&library, wanted, |id: &FunctionId| id.function().arguments.len()).map_err(elf)?;
        let not_probed = plan.unprobeable.iter().map(|function| function.function.name().to_owned()).collect();
        let (implementation, build_id) =
            (Implementation::of(&library).to_string(), library.build_id().map(str::to_owned));
        contents.was_readable().map_err(unread)?;
        Ok(Self { file, path, implementation, build_id, plan, not_probed, breakpoints: 0 })
    }

    /// Takes out the functions whose code in memory is not what the file says.
    fn remove_patched(&mut self, process: &Process, mapped: &MappedFile) -> Result<(), ProbeError> {
        let memory = process.memory_with(&self.file).map_err(ProbeError::Process)?;
        let mut unreadable = None;
        let (not_probed, breakpoints) = (&mut self.not_probed, &mut self.breakpoints);
        self.plan.functions.retain(|function| {
            let Some(address) = mapped.address_of(function.function.file_offset) else { return true };
            match compare_code(&memory, address, &function.fingerprint) {
                Ok(Ok(())) => true,
                // Another tracer's uprobe, or an earlier one of ours: the kernel shares them.
                Ok(Err(Difference::Breakpoint { .. })) => {
                    *breakpoints += 1;
                    true
                }
                Ok(Err(difference)) => {
                    not_probed.push(format!("{} ({difference})", function.function.name()));
                    false
                }
                Err(error) => {
                    unreadable = Some(error);
                    true
                }
            }
        });
        match unreadable {
            Some(source) => Err(ProbeError::Memory { path: self.path.clone(), pid: process.pid(), source }),
            None => Ok(()),
        }
    }

    /// Whether each of the functions has a probe in this process's memory already.
    pub(super) fn is_all_probed(&self) -> bool {
        self.breakpoints == self.plan.functions.len()
    }

    /// Whether one of them has.
    pub(super) fn has_breakpoints(&self) -> bool {
        self.breakpoints > 0
    }

    /// Where to probe; `cookie` says what the programs are told at each hit of a function at an offset, bytes, in a file whose code
    /// ends at another.
    pub(super) fn sites(&self, cookie: impl Fn(FunctionId, u64, u64) -> u64) -> Vec<ProbeSite> {
        let site = |function: &PlannedFunction<FunctionId>| {
            let (id, offset) = (function.function.aliases.first()?.key, function.site.offset);
            Some(ProbeSite { offset, cookie: cookie(id, offset, self.plan.text_end) })
        };
        self.plan.functions.iter().filter_map(site).collect()
    }

    /// Functions at which a probe is dear.
    pub(super) fn slow(&self) -> Vec<SlowSite> {
        let slow = self.plan.functions.iter().filter_map(|function| match &function.site.kind {
            SiteKind::Slow { reason } => {
                let id = function.function.aliases.first()?.key;
                Some(SlowSite { function: id.function().name, reason: reason.to_string() })
            }
            _ => None,
        });
        slow.collect()
    }
}
