//! Programs and probes, granted to a process that has no rights ([`super::apart`]).
//!
//! Whoever asks may have been taken over by what it has read. It can have counted by the programs that are embedded here, in tables of the
//! sizes that are permitted, and nothing else: where the kernel keeps what is read from the kernel's own types, whatever the request says.

use std::{
    collections::HashMap,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

use bytemuck::bytes_of;
use mpiprobe_common::{Config, EnvironmentFields, Namespace, OpenCalls, tables};

use super::{
    AttachError, Attachment, Engine,
    apart::{Answer, MOST_SITES, Request},
    choose_method,
};

/// What all engines together may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub engines: usize,
    /// Tables, bytes.
    pub bytes: u64,
}

/// Loads, attaches, and keeps what was loaded and attached.
#[derive(Debug)]
pub struct Grants {
    limits: Limits,
    engines: HashMap<u64, Hosted>,
    next: u64,
}

#[derive(Debug)]
struct Hosted {
    /// Of one link each.
    links: HashMap<u64, Attachment>,
    next_link: u64,
    bytes: u64,
    /// After its links: what is attached is detached first.
    engine: Engine,
}

impl Grants {
    pub fn new(limits: Limits) -> Self {
        Self { limits, engines: HashMap::new(), next: 0 }
    }

    /// Does what a request says, or refuses it.
    pub fn grant(&mut self, request: &Request, given: Option<BorrowedFd<'_>>) -> (Answer, Vec<OwnedFd>) {
        self.answer(request, given).unwrap_or_else(|error| (error.into(), Vec::new()))
    }

    /// How many engines there are, and bytes of their tables.
    pub fn usage(&self) -> (usize, u64) {
        (self.engines.len(), self.engines.values().map(|hosted| hosted.bytes).sum())
    }

    fn answer(
        &mut self,
        request: &Request,
        given: Option<BorrowedFd<'_>>,
    ) -> Result<(Answer, Vec<OwnedFd>), AttachError> {
        let without = |answer| Ok((answer, Vec::new()));
        match request {
            Request::Load { config, method } => {
                let (config, bytes) = self.permitted(config)?;
                self.load(choose_method(&config, *method)?, bytes)
            }
            Request::Watch { engine } => {
                self.hosted(*engine)?.engine.watch_processes()?;
                without(Answer::Done)
            }
            Request::Attach { engine, shown, sites, scope, is_tool, has_returns } => {
                let file = given.ok_or_else(|| refused("a file is missing"))?;
                if sites.len() > MOST_SITES {
                    return Err(refused("too many sites"));
                }
                let hosted = self.hosted(*engine)?;
                hosted.engine.arm_returns(*has_returns);
                let attach = if *is_tool { Engine::attach_tool } else { Engine::attach };
                let attachment = attach(&hosted.engine, file, Path::new(shown), sites, *scope)?;
                without(Answer::Attached(hosted.keep(attachment)))
            }
            Request::AttachToReturn { engine, shown, offset, scope } => {
                let file = given.ok_or_else(|| refused("a file is missing"))?;
                let hosted = self.hosted(*engine)?;
                let attachment = hosted.engine.attach_to_return(file, Path::new(shown), *offset, *scope)?;
                without(Answer::Attached(hosted.keep(attachment)))
            }
            Request::Disable { engine, link } => {
                if let Some(attachment) = self.hosted(*engine)?.links.get(link) {
                    attachment.disable();
                }
                without(Answer::Done)
            }
            Request::Detach { engine, link } => {
                // What was released before has none.
                if let Some(hosted) = self.engines.get_mut(engine) {
                    hosted.links.remove(link);
                }
                without(Answer::Done)
            }
            Request::Locate { engine } => {
                self.hosted(*engine)?.engine.locate_open_calls();
                without(Answer::Done)
            }
            Request::Missed { engine } => without(Answer::Missed(self.hosted(*engine)?.engine.missed_hits())),
            Request::Release { engine } => {
                self.engines.remove(engine);
                without(Answer::Done)
            }
        }
    }

    /// What may be loaded of what is asked for, and how much room it takes, bytes.
    fn permitted(&self, config: &[u8]) -> Result<(Config, u64), AttachError> {
        let asked: Config = bytemuck::try_pod_read_unaligned(config).map_err(|_| refused("not a configuration"))?;
        let config = Config {
            open_calls: OpenCalls::UNKNOWN,
            environment: EnvironmentFields::UNKNOWN,
            namespace: Namespace::INITIAL,
            read_call_sites: 1,
            trace: 0,
            ..asked
        };
        let bytes = tables::bytes(&config);
        let (engines, taken) = self.usage();
        if engines >= self.limits.engines {
            return Err(refused(&format!("{engines} observations go on already, which is as many as may")));
        }
        if taken.saturating_add(bytes) > self.limits.bytes {
            let (wanted, most) = (bytes >> 10, self.limits.bytes >> 10);
            return Err(refused(&format!(
                "its tables take {wanted} KiB, and all tables together may take {most} KiB, of which {} are taken",
                taken >> 10
            )));
        }
        Ok((config, bytes))
    }

    fn load(&mut self, engine: Engine, bytes: u64) -> Result<(Answer, Vec<OwnedFd>), AttachError> {
        let (mut names, mut descriptors) = (Vec::new(), Vec::new());
        for (name, descriptor) in engine.tables.descriptors()? {
            let copied = descriptor.try_clone_to_owned();
            descriptors.push(copied.map_err(|source| AttachError::Table { table: name, source })?);
            names.push(name.to_owned());
        }
        let number = self.next;
        self.next += 1;
        let answer = Answer::Loaded {
            engine: number,
            config: bytes_of(engine.tables.config()).to_vec(),
            tables: names,
            method: engine.method,
            calibration: engine.calibration,
            refusals: engine.refusals.clone(),
            can_scope: engine.can_scope(),
            can_scope_returns: engine.can_scope_returns(),
        };
        self.engines.insert(number, Hosted { links: HashMap::new(), next_link: 0, bytes, engine });
        Ok((answer, descriptors))
    }

    fn hosted(&mut self, engine: u64) -> Result<&mut Hosted, AttachError> {
        self.engines.get_mut(&engine).ok_or_else(|| refused("no such observation"))
    }
}

impl Hosted {
    fn keep(&mut self, attachment: Attachment) -> Vec<(u64, bool)> {
        let single = attachment.split();
        let kept = single.into_iter().map(|(link, returns)| {
            let number = self.next_link;
            self.next_link += 1;
            self.links.insert(number, link);
            (number, returns)
        });
        kept.collect()
    }
}

fn refused(why: &str) -> AttachError {
    AttachError::Apart { message: format!("the service refuses this: {why}"), errno: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(config: &Config) -> Request {
        Request::Load { config: bytes_of(config).to_vec(), method: None }
    }

    fn message(grants: &mut Grants, request: &Request) -> String {
        match grants.grant(request, None).0 {
            Answer::Failed { message, .. } => message,
            answer => format!("{answer:?}"),
        }
    }

    #[test]
    fn tables_have_a_limit() {
        let mut grants = Grants::new(Limits { engines: 1, bytes: 1 << 20 });
        assert!(message(&mut grants, &load(&Config::DEFAULT)).contains("all tables together may take 1024 KiB"));
        let mut grants = Grants::new(Limits { engines: 0, bytes: 1 << 30 });
        assert!(message(&mut grants, &load(&Config::DEFAULT)).contains("as many as may"));
    }

    #[test]
    fn where_the_kernel_keeps_what_is_nobodys_word() {
        let grants = Grants::new(Limits { engines: 1, bytes: 1 << 30 });
        let asked = Config {
            open_calls: OpenCalls { task_utask: 8, ..OpenCalls::UNKNOWN },
            environment: EnvironmentFields { task_mm: 8, env_start: 16, env_end: 24, task_real_parent: 32 },
            ..Config::DEFAULT
        };
        let (config, _) = grants.permitted(bytes_of(&asked)).unwrap();
        assert_eq!((config.open_calls, config.environment), (OpenCalls::UNKNOWN, EnvironmentFields::UNKNOWN));
        assert!(grants.permitted(&bytes_of(&asked)[1..]).is_err());
    }

    #[test]
    fn what_there_is_not_cannot_be_used() {
        let mut grants = Grants::new(Limits { engines: 1, bytes: 1 << 30 });
        for request in [Request::Watch { engine: 7 }, Request::Locate { engine: 7 }, Request::Missed { engine: 7 }] {
            assert!(message(&mut grants, &request).contains("no such observation"));
        }
        assert_eq!(message(&mut grants, &Request::Release { engine: 7 }), "Done");
        assert_eq!(message(&mut grants, &Request::Detach { engine: 7, link: 1 }), "Done");
    }
}
