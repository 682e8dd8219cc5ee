//! Where the default functions of the measured library are probed.

use std::fs::File;
use std::path::{Path, PathBuf};

use mpiprobe_attach::ProbeSite;
use mpiprobe_functions::{FunctionId, FunctionSet};
use mpiprobe_plan::{Census, ElfFile, Implementation, Library, SiteKind, plan};

use super::{BenchError, error::file_error};

#[derive(Debug)]
pub(super) struct Sites {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) probes: Vec<ProbeSite>,
    pub(super) implementation: String,
    pub(super) census: Census,
    /// Functions that are not probed at their entry, or slowly: a tracer that knows only entries pays for single steps there.
    not_at_entry: Vec<&'static str>,
}

impl Sites {
    /// As `mpiprobe` plans them without options.
    pub(super) fn plan(path: &Path) -> Result<Self, BenchError> {
        let file = File::open(path).map_err(|source| file_error("opening", path, source))?;
        let same = file.try_clone().map_err(|source| file_error("opening", path, source))?;
        let same = same.into();
        let contents = ElfFile::new(&same)?;
        let library = Library::read(&contents)?;
        let wanted = FunctionSet::default_functions();
        let planned = plan(
            &library,
            |name| mpiprobe_functions::by_name(name).filter(|id| wanted.contains(*id)),
            |id: &FunctionId| id.function().arguments.len(),
        )?;
        let mut probes = Vec::new();
        let mut not_at_entry = Vec::new();
        for function in &planned.functions {
            let Some(id) = function.function.aliases.first().map(|alias| alias.key) else { continue };
            probes.push(ProbeSite {
                offset: function.site.offset,
                cookie: id.cookie().at(function.site.offset, planned.text_end).0,
            });
            if function.site.kind != SiteKind::Fast {
                not_at_entry.extend(function.function.aliases.iter().map(|alias| alias.key.function().name));
            }
        }
        let implementation = Implementation::of(&library).to_string();
        let census = planned.census();
        Ok(Self { file, path: path.to_owned(), probes, implementation, census, not_at_entry })
    }

    /// Whether all functions can be probed well at their very entry, as other tracers do.
    pub(super) fn are_at_entry(&self, functions: &[&str]) -> bool {
        !functions.iter().any(|function| self.not_at_entry.contains(function))
    }
}
