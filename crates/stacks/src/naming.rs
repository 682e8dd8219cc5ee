//! From frames to names: the MPI call that a thread is in, and what is around it.

use std::{sync::Arc, time::Instant};

use crate::callsites::{Layer, ModuleAddress, Naming};
use mpiprobe_functions::FunctionId;
use mpiprobe_model::{CallSite, SourceFrame};

use crate::{
    copy::Stack,
    fingerprint::Fingerprint,
    thread_stack::MpiCall,
    tree::Label,
    unwind::{Frame, Unwound},
};

/// The frames of a thread in names.
pub(crate) struct Named {
    pub(crate) call: Option<MpiCall>,
    /// Place of the frame of that call, and where its function begins if the frame is that of another one, which it has ended in.
    pub(crate) call_frame: Option<(usize, Option<u64>)>,
    /// Where that call returns to, in the program.
    pub(crate) return_address: Option<u64>,
    pub(crate) frames: Vec<Label>,
    pub(crate) place: Option<Arc<CallSite>>,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// What else is known of a thread than its frames.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) stack: &'a Stack,
    /// The path of the program, as its process knows it.
    pub(crate) executable: &'a str,
    /// The Python functions that it is in, innermost first.
    pub(crate) python: &'a [Arc<CallSite>],
}

/// `called`: what [`crate::arguments::called`] has found.
pub(crate) fn named(
    unwound: &Unwound,
    called: Option<(usize, FunctionId, Option<u64>)>,
    surroundings: &Surroundings<'_>,
    (naming, until): (&mut Naming, Instant),
) -> Named {
    let frames = &unwound.frames;
    let mut resolve = |at: &ModuleAddress| naming.resolve(at, until);
    let by_name = outermost_call(frames).map(|(place, function)| (place, function, None));
    let found = by_name.or(called);
    // Where the program's own code begins, from the inside.
    let outside = found.map_or(0, |(place, ..)| first_outside(frames, place + 1));
    let own = frames.get(outside..).unwrap_or_default();
    let sites: Vec<Arc<CallSite>> = own.iter().map(|frame| resolve(&frame.at)).collect();
    let from_python = own.first().is_some_and(|frame| frame.at.layer() == Some(Layer::Python));
    // What is around a call that an extension in C has made is that one's code.
    let python = Some(surroundings.python).filter(|python| !python.is_empty() && (from_python || found.is_none()));
    let call = found.map(|(_, function, _)| MpiCall {
        function,
        site: python.and_then(<[_]>::first).or(sites.first()).cloned(),
        from_python,
        words: Vec::new(),
    });
    let (sites, place) = match python {
        Some(python) => (python, python.first().cloned()),
        None => (sites.as_slice(), program_place(&sites, surroundings.executable)),
    };
    let mut labels: Vec<Label> = Vec::new();
    let is_main = |site: &CallSite| outermost_function(site) == Some("main");
    let outermost = sites.iter().position(|site| is_main(site)).map_or(sites.len(), |main| main + 1);
    for (place, site) in sites.iter().enumerate().take(outermost).rev() {
        // The innermost function has called nothing: the place is the instruction itself.
        labels.extend(self::labels(site, place == 0 && found.is_none() && python.is_none()));
    }
    labels.extend(found.map(|(_, function, _)| Label::new(function.function().name, None)));
    Named {
        call,
        call_frame: found.map(|(place, _, start)| (place, start)),
        return_address: found.and_then(|_| own.first()?.registers.ip()),
        frames: labels,
        place,
        fingerprint: Fingerprint::of(own, surroundings.stack),
    }
}

/// The outermost frame that is a function of MPI.
pub(crate) fn outermost_call(frames: &[Frame]) -> Option<(usize, FunctionId)> {
    let mut found = None;
    for (place, frame) in frames.iter().enumerate() {
        if let Some(function) = frame.at.offset.checked_sub(1).and_then(|address| frame.at.module.mpi_function(address))
        {
            found = Some((place, function));
        }
    }
    found
}

/// The first frame from `place` on that is no layer between the program and MPI.
pub(crate) fn first_outside(frames: &[Frame], place: usize) -> usize {
    let callers = frames.get(place..).unwrap_or_default();
    let is_layer = |frame: &&Frame| frame.at.layer().is_some_and(Layer::is_called_by_user);
    place + callers.iter().take_while(is_layer).count()
}

/// One for each function of the source, from the outside in: the compiler may have put some into others.
fn labels(site: &CallSite, is_innermost: bool) -> Vec<Label> {
    let mut labels = Vec::new();
    for frame in site.inlined.iter().rev().chain([&site.at]) {
        let place = frame.file.as_deref().zip(frame.line).map(|(file, line)| format!("{}:{line}", base_name(file)));
        labels.push(match (&frame.function, place) {
            (Some(function), Some(place)) => Label::new(function, Some(place)),
            (Some(function), None) => {
                let offset = site.function_offset.map(|offset| offset - u64::from(is_innermost && offset > 0));
                let offset = offset.map(|offset| format!("+{offset:#x} "));
                Label::new(function, Some(format!("{}in {}", offset.unwrap_or_default(), base_name(&site.path))))
            }
            (None, Some(place)) => Label::new(place, Some(format!("in {}", base_name(&site.path)))),
            (None, None) => {
                let offset = site.offset - u64::from(is_innermost && site.offset > 0);
                Label::new(format!("{}+{offset:#x}", base_name(&site.path)), None)
            }
        });
    }
    labels
}

fn outermost_function(site: &CallSite) -> Option<&str> {
    site.inlined.last().unwrap_or(&site.at).function.as_deref()
}

/// The innermost place of the program: in its own file, or in a library that is compiled with lines and is none of the system's.
fn program_place(sites: &[Arc<CallSite>], executable: &str) -> Option<Arc<CallSite>> {
    let has_line = |frame: &SourceFrame| frame.file.is_some() && frame.line.is_some();
    let of_system = |path: &str| ["/lib", "/usr/lib", "["].iter().any(|start| path.starts_with(start));
    let is_own = |site: &&Arc<CallSite>| site.path == executable || (has_line(&site.at) && !of_system(&site.path));
    sites.iter().find(is_own).cloned()
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}
