//! Jobs that mpiprobe starts itself: by which engine they are counted, and what the kernel counts from their first call on.

mod command;
mod elsewhere;
mod error;
mod held;
mod kernel;
mod needed;
mod options;
mod ready;
mod relay;
mod wrapper;

use clap::ValueEnum;
use mpiprobe_report::present::say;

pub use error::LaunchError;
pub use options::RunOptions;
use ready::Ready;
pub use ready::Unready;

/// Who counts in a command that mpiprobe starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RunEngine {
    /// The kernel, where it may be asked and will not miss a call; else the processes themselves.
    #[default]
    Auto,
    /// The kernel, by probes on the MPI library. Where that is not permitted, nothing is run.
    Ebpf,
    /// The processes themselves, by a preloaded library.
    Wrapper,
}

/// Runs the command to its end; gives its exit status as a shell has it.
pub async fn run_command(options: &RunOptions, engine: RunEngine) -> Result<u8, LaunchError> {
    match engine {
        RunEngine::Wrapper => wrapper::launch(options).await,
        RunEngine::Ebpf => match Ready::new(options) {
            Ok(ready) => kernel::launch(options, ready).await,
            Err(why) => Err(LaunchError::NoEbpf(why)),
        },
        RunEngine::Auto if options.trace.is_some() => {
            say("engine wrapper: calls that are recorded one by one are disturbed least that way");
            wrapper::launch(options).await
        }
        RunEngine::Auto => match Ready::for_certain(options) {
            Ok(ready) => {
                say(format_args!("engine ebpf: it is permitted here, and {} is known before it runs", ready.known()));
                kernel::launch(options, ready).await
            }
            Err(why) => {
                say(format_args!("engine wrapper: {}", why.in_short()));
                wrapper::launch(options).await
            }
        },
    }
}
