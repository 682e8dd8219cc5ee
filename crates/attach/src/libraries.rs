//! The table of libraries whose layout is known before their processes are looked at.

use aya::maps::{HashMap, MapError};
use mpiprobe_common::layout::Template;

use super::{AttachError, Tables, pod::Plain};

const TABLE: &str = "LIBRARY_OF";

/// Tells the programs of a library: under a number that was not given before, and by the cookies of the probes in it.
pub fn tell_library(tables: &mut Tables, number: u32, template: &Template, cookies: &[u64]) -> Result<(), AttachError> {
    tables.fill("LIBRARIES", [(number, Plain(*template))].into_iter())?;
    let mut map: HashMap<_, u64, u32> =
        HashMap::try_from(tables.map_mut(TABLE)?).map_err(|source| AttachError::Object { source: Box::new(source) })?;
    cookies.iter().try_for_each(|cookie| map.insert(cookie, number, 0)).map_err(failed)
}

/// These cookies are of probes in two libraries that differ: they tell neither.
pub fn forget_library(tables: &mut Tables, cookies: &[u64]) -> Result<(), AttachError> {
    let mut map: HashMap<_, u64, u32> =
        HashMap::try_from(tables.map_mut(TABLE)?).map_err(|source| AttachError::Object { source: Box::new(source) })?;
    for cookie in cookies {
        // Not to be there is no error.
        let _ = map.remove(cookie);
    }
    Ok(())
}

fn failed(error: MapError) -> AttachError {
    let source = match error {
        MapError::SyscallError(error) => error.io_error,
        error => std::io::Error::other(error),
    };
    AttachError::Table { table: TABLE, source }
}
