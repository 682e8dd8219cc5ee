//! The table of requests: the room of processes that have ended.

use std::io;

use aya::maps::HashMap;
use mpiprobe_common::{Request, RequestKey, request::state};

use super::{AttachError, Tables, kernel::bpf::read_hash, pod::Plain};

const TABLE: &str = "REQUESTS";

/// Gives back the room of processes that have ended, by their slots. What they never completed stays, to be told.
pub fn release_requests(tables: &mut Tables, processes: &[u32]) -> Result<(), AttachError> {
    let capacity = tables.options().config.request_slots as usize;
    let failed = |source: io::Error| AttachError::Table { table: TABLE, source };
    let known: Vec<(RequestKey, Request)> = read_hash(tables.table_fd(TABLE)?, capacity).map_err(failed)?;
    let mut map: HashMap<_, Plain<RequestKey>, Plain<Request>> =
        HashMap::try_from(tables.map_mut(TABLE)?).map_err(|error| failed(io::Error::other(error)))?;
    let complete =
        |(key, request): &(RequestKey, Request)| processes.contains(&key.process) && request.state & state::ACTIVE == 0;
    for (key, _) in known.iter().filter(|entry| complete(entry)) {
        // One that is not there any more is what is wanted.
        let _ = map.remove(&Plain(*key));
    }
    Ok(())
}
