//! All wanted functions of a library with their sites.

use mpiprobe_elf::ElfError;

use super::{Function, Library, Rejected, Site, SiteKind, Unprobeable, fingerprint::Fingerprint, plan_site};

/// A function that can be probed, and where.
#[derive(Debug)]
pub struct PlannedFunction<K> {
    pub function: Function<K>,
    pub site: Site,
    pub fingerprint: Fingerprint,
}

/// A function on which the kernel would refuse a probe.
#[derive(Debug)]
pub struct UnprobeableFunction<K> {
    pub function: Function<K>,
    pub reason: Unprobeable,
}

/// What becomes of the wanted names in one library.
#[derive(Debug)]
pub struct Plan<K> {
    /// By file offset; no two have the same site.
    pub functions: Vec<PlannedFunction<K>>,
    /// Where the library's code ends in the file; `u64::MAX` if it is in several places.
    pub text_end: u64,
    pub unprobeable: Vec<UnprobeableFunction<K>>,
    pub rejected: Vec<Rejected<K>>,
}

/// Plans a site for every function whose exact name `wanted` knows; `arguments` says how many arguments it has.
pub fn plan<K>(
    library: &Library<'_>,
    wanted: impl FnMut(&str) -> Option<K>,
    arguments: impl Fn(&K) -> usize,
) -> Result<Plan<K>, ElfError> {
    let symbols = library.resolve(wanted)?;
    let text_end = library.elf.segments.text_end().unwrap_or(u64::MAX);
    let mut plan = Plan { functions: Vec::new(), text_end, unprobeable: Vec::new(), rejected: symbols.rejected };
    for function in symbols.functions {
        let code = library.code(&function);
        let arguments = function.aliases.iter().map(|alias| arguments(&alias.key)).max().unwrap_or(usize::MAX);
        match plan_site(code, function.address, function.file_offset, arguments) {
            Ok(site) => {
                let distance = if let SiteKind::Moved { by } = site.kind { by } else { 0 };
                let fingerprint = Fingerprint::of(code, distance.into());
                plan.functions.push(PlannedFunction { function, site, fingerprint });
            }
            Err(reason) => plan.unprobeable.push(UnprobeableFunction { function, reason }),
        }
    }
    Ok(plan)
}
