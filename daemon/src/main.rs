//! The `mpiprobe` command.

use std::process::ExitCode;

use mpiprobe::{
    cli::{Arguments, Exit, execute, parse, parse_hang, parse_observation, parse_trace, serve},
    service::{Parse, work_if_asked},
};
use mpiprobe_discover::foreign::{serve_if_asked, use_process};
use mpiprobe_report::present::{LogWriter, say};
use mpiprobe_view::GivenBack;

fn main() -> ExitCode {
    if serve_if_asked() {
        return ExitCode::SUCCESS;
    }
    if work_if_asked(Parse { observation: parse_observation, trace: parse_trace, hang: parse_hang }) {
        return ExitCode::SUCCESS;
    }
    use_process();
    let arguments = parse();
    start_log(&arguments);
    if let Some(served) = serve(&arguments) {
        return match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(error);
                Exit::Failed.into()
            }
        };
    }
    match run(&arguments) {
        Ok(exit) => exit.into(),
        Err(error) => {
            say(error);
            Exit::Failed.into()
        }
    }
}

/// One thread: what is measured must not be disturbed by the measurer more than needed.
fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    // Whatever ends it.
    let _given_back = GivenBack::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(execute(arguments));
    runtime.shutdown_background();
    Ok(exit?)
}

/// Warnings always, more if asked for; on standard error, so that results stay clean.
fn start_log(arguments: &Arguments) {
    let level = match arguments.verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        // What the programs log bears the name of their crate.
        if arguments.trace_bpf { format!("{level},probe_ebpf=info") } else { level.to_owned() }.into()
    });
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogWriter)
        .without_time()
        .log_internal_errors(false)
        .init();
}
