//! Probes on a file, and their removal.

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use super::{
    AttachError, AttachMethod,
    apart::LinkApart,
    kernel::{bpf, breakpoints::Breakpoints, perf_event},
    object::Program,
    site::{ProbeSite, Scope},
};

/// Probes that are attached until this is dropped.
#[derive(Debug, Default)]
pub struct Attachment {
    links: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    probe: Probe,
    /// Its program runs at returns only.
    returns: bool,
}

/// What is dropped to detach.
#[derive(Debug)]
enum Probe {
    /// One link to many places.
    Multi { _link: Breakpoints },
    /// The link of a program to a perf event, and that.
    Event { _link: OwnedFd, event: Breakpoints },
    /// Another process has it.
    Apart(LinkApart),
}

impl Probe {
    /// Where detaching is slow, stops counting at once.
    fn disable(&self) -> io::Result<()> {
        match self {
            Self::Event { event, .. } => perf_event::disable(event.as_fd()),
            Self::Multi { .. } => Ok(()),
            Self::Apart(link) => link.disable(),
        }
    }
}

impl Attachment {
    fn of(links: Vec<Link>) -> Self {
        Self { links }
    }

    /// Links that another process has, and whether the program of each runs at returns only.
    pub(crate) fn apart(links: Vec<(LinkApart, bool)>) -> Self {
        Self::of(links.into_iter().map(|(link, returns)| Link { probe: Probe::Apart(link), returns }).collect())
    }

    /// Each link for itself, in the order of attaching, and whether its program runs at returns only.
    pub(crate) fn split(mut self) -> Vec<(Self, bool)> {
        let links = std::mem::take(&mut self.links);
        links
            .into_iter()
            .map(|link| (link.returns, link))
            .map(|(returns, link)| (Self::of(vec![link]), returns))
            .collect()
    }

    /// Attaches `programs` to `sites` of an open file. `shown` is the file's name in messages.
    ///
    /// All or nothing: on an error every probe attached so far is detached again.
    pub(super) fn new<'a>(
        method: AttachMethod,
        programs: impl IntoIterator<Item = &'a Program>,
        file: BorrowedFd<'_>,
        shown: &Path,
        sites: &[ProbeSite],
        scope: Scope,
    ) -> Result<Self, AttachError> {
        let failed = |source| AttachError::Link { method, file: PathBuf::from(shown), source };
        let path = descriptor_path(file).map_err(failed)?;
        let mut attachment = Self { links: Vec::new() };
        for program in programs {
            match method {
                AttachMethod::Session | AttachMethod::Multi => attachment.add_multi(program, &path, sites, scope),
                AttachMethod::PerfEvent => attachment.add_perf_events(program, &path, sites, scope),
            }
            .map_err(failed)?;
        }
        Ok(attachment)
    }

    fn add_multi(&mut self, program: &Program, path: &CString, sites: &[ProbeSite], scope: Scope) -> io::Result<()> {
        let offsets: Vec<u64> = sites.iter().map(|site| site.offset).collect();
        let cookies: Vec<u64> = sites.iter().map(|site| site.cookie).collect();
        let usage = program.usage;
        let link = bpf::link_uprobes(
            program.fd.as_fd(),
            usage.attach_type,
            path,
            &offsets,
            &cookies,
            usage.returns,
            scope.pid(),
        )?;
        self.links.push(Link { probe: Probe::Multi { _link: link }, returns: usage.returns });
        Ok(())
    }

    fn add_perf_events(
        &mut self,
        program: &Program,
        path: &CString,
        sites: &[ProbeSite],
        scope: Scope,
    ) -> io::Result<()> {
        for site in sites {
            let event = perf_event::open_uprobe(path, site.offset, program.usage.returns, scope.pid())?;
            let link = bpf::link_perf_event(program.fd.as_fd(), event.as_fd(), site.cookie)?;
            self.links.push(Link { probe: Probe::Event { _link: link, event }, returns: program.usage.returns });
        }
        Ok(())
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        self.links.append(&mut other.links);
        self
    }

    /// Detaches what runs at returns only. Where one program runs at both, it decides at each entry.
    pub fn leave_returns_out(&mut self) {
        self.links.retain(|link| !link.returns);
    }

    /// Stops counting at once where detaching is slow. The targets still pay for the traps until [`Self::detach`].
    pub fn disable(&self) {
        for link in &self.links {
            if let Err(error) = link.probe.disable() {
                tracing::warn!("cannot disable a probe before detaching it: {error}");
            }
        }
    }

    /// How many links have to be closed one by one.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Detaches, telling after each link how many are left. In the order of attaching reversed: entries before returns.
    pub fn detach(mut self, mut progress: impl FnMut(usize)) {
        while let Some(link) = self.links.pop() {
            drop(link);
            progress(self.links.len());
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        while self.links.pop().is_some() {}
    }
}

/// A path that leads to exactly the open file, whatever its name means in this or any mount namespace.
fn descriptor_path(file: BorrowedFd<'_>) -> io::Result<CString> {
    bpf::c_string(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
