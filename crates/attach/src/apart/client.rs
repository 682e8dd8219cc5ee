//! The process that has none of the rights.

use std::{
    collections::HashMap,
    fmt, io,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
    sync::{Arc, OnceLock},
};

use aya::maps::{Map, MapData};
use bytemuck::bytes_of;
use mpiprobe_common::Config;

use super::request::{Answer, MOST_SITES, Request};
use crate::{AttachError, AttachMethod, Calibration, ProbeSite, Refusal, Scope};

/// The way to the process that has the rights.
pub trait AskFor: Send + Sync + fmt::Debug {
    fn ask(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> io::Result<(Answer, Vec<OwnedFd>)>;
}

static OTHER: OnceLock<Box<dyn AskFor>> = OnceLock::new();

/// From now on another process loads programs and attaches. Only the first one counts.
pub fn ask_instead(other: Box<dyn AskFor>) {
    let _ = OTHER.set(other);
}

/// The other process, if there is one to be asked.
pub(crate) fn other() -> Option<&'static dyn AskFor> {
    OTHER.get().map(AsRef::as_ref)
}

fn ask(request: &Request, descriptors: &[BorrowedFd<'_>]) -> Result<(Answer, Vec<OwnedFd>), AttachError> {
    let gone = |source: io::Error| AttachError::Apart {
        message: format!("the privileged process of the service does not answer: {source}"),
        errno: None,
    };
    let other = other().ok_or_else(|| gone(io::ErrorKind::NotConnected.into()))?;
    match other.ask(request, descriptors).map_err(gone)? {
        (Answer::Failed { message, errno }, _) => Err(AttachError::Apart { message, errno }),
        answered => Ok(answered),
    }
}

fn unexpected() -> AttachError {
    AttachError::Apart { message: "the privileged process of the service answers something else".into(), errno: None }
}

/// What another process has loaded.
#[derive(Debug)]
pub(crate) struct Other {
    engine: Arc<EngineApart>,
    can_scope: bool,
    can_scope_returns: bool,
}

/// The same, and what is known of it.
pub(crate) struct Loaded {
    /// By their names.
    pub(crate) tables: HashMap<String, Map>,
    /// What they were made by.
    pub(crate) config: Config,
    pub(crate) method: AttachMethod,
    pub(crate) calibration: Calibration,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) other: Other,
}

/// Has another process load everything.
pub(crate) fn load(config: &Config, method: Option<AttachMethod>) -> Result<Loaded, AttachError> {
    let (answer, descriptors) = ask(&Request::Load { config: bytes_of(config).to_vec(), method }, &[])?;
    let Answer::Loaded { engine, config, tables, method, calibration, refusals, can_scope, can_scope_returns } = answer
    else {
        return Err(unexpected());
    };
    let engine = Arc::new(EngineApart { number: engine });
    let config = bytemuck::try_pod_read_unaligned(&config).map_err(|_| unexpected())?;
    let maps: Result<HashMap<String, Map>, _> = tables
        .into_iter()
        .zip(descriptors)
        .map(|(name, descriptor)| Ok((name, Map::from_map_data(MapData::from_fd(descriptor)?)?)))
        .collect();
    let maps = maps.map_err(|source: aya::maps::MapError| AttachError::Object { source: Box::new(source) })?;
    Ok(Loaded {
        tables: maps,
        config,
        method,
        calibration,
        refusals,
        other: Other { engine, can_scope, can_scope_returns },
    })
}

impl Other {
    pub(crate) fn watch(&self) -> Result<(), AttachError> {
        ask(&Request::Watch { engine: self.engine.number }, &[]).map(drop)
    }

    pub(crate) fn locate(&self) -> Result<(), AttachError> {
        ask(&Request::Locate { engine: self.engine.number }, &[]).map(drop)
    }

    pub(crate) fn missed_hits(&self) -> Option<u64> {
        match ask(&Request::Missed { engine: self.engine.number }, &[]) {
            Ok((Answer::Missed(missed), _)) => missed,
            _ => None,
        }
    }

    pub(crate) fn can_scope(&self) -> bool {
        self.can_scope
    }

    pub(crate) fn can_scope_returns(&self) -> bool {
        self.can_scope_returns
    }

    /// Probes functions of one file. All of them, or on an error none. With each link, whether its program runs at returns only.
    pub(crate) fn attach(
        &self,
        file: BorrowedFd<'_>,
        shown: &Path,
        sites: &[ProbeSite],
        (scope, is_tool, has_returns): (Scope, bool, bool),
    ) -> Result<Vec<(LinkApart, bool)>, AttachError> {
        let mut all = Vec::new();
        for some in sites.chunks(MOST_SITES) {
            let (engine, shown) = (self.engine.number, shown.display().to_string());
            let request = Request::Attach { engine, shown, sites: some.to_vec(), scope, is_tool, has_returns };
            all.extend(self.attached(&request, file)?);
        }
        Ok(all)
    }

    /// Probes a place that calls return to.
    pub(crate) fn attach_to_return(
        &self,
        file: BorrowedFd<'_>,
        shown: &Path,
        offset: u64,
        scope: Scope,
    ) -> Result<Vec<(LinkApart, bool)>, AttachError> {
        let (engine, shown) = (self.engine.number, shown.display().to_string());
        self.attached(&Request::AttachToReturn { engine, shown, offset, scope }, file)
    }

    fn attached(&self, request: &Request, file: BorrowedFd<'_>) -> Result<Vec<(LinkApart, bool)>, AttachError> {
        let (Answer::Attached(links), _) = ask(request, &[file])? else { return Err(unexpected()) };
        let link = |(number, returns)| (LinkApart { engine: Arc::clone(&self.engine), number }, returns);
        Ok(links.into_iter().map(link).collect())
    }
}

/// Released when nobody has a link of it any more.
#[derive(Debug)]
struct EngineApart {
    number: u64,
}

impl Drop for EngineApart {
    fn drop(&mut self) {
        if let Err(error) = ask(&Request::Release { engine: self.number }, &[]) {
            tracing::warn!("{error}");
        }
    }
}

/// A link that another process holds; dropping it detaches.
#[derive(Debug)]
pub(crate) struct LinkApart {
    engine: Arc<EngineApart>,
    number: u64,
}

impl LinkApart {
    pub(crate) fn disable(&self) -> io::Result<()> {
        let request = Request::Disable { engine: self.engine.number, link: self.number };
        ask(&request, &[]).map(drop).map_err(io::Error::other)
    }
}

impl Drop for LinkApart {
    fn drop(&mut self) {
        let request = Request::Detach { engine: self.engine.number, link: self.number };
        if let Err(error) = ask(&request, &[]) {
            tracing::warn!("{error}");
        }
    }
}
