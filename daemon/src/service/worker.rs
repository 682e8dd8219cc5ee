//! The half of the service that has no rights.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, PoisonError},
    time::Duration,
};

use mpiprobe_discover::users;
use rustix::fs::{OFlags, fcntl_setfl};
use tokio::{
    io::unix::AsyncFd,
    net::{TcpListener, UnixListener},
    sync::mpsc,
    task::AbortHandle,
    time::{interval, sleep},
};

use super::{
    configuration::Jobs,
    confinement::confine,
    http::{Parse, Service, Settings},
    jobs::{Written, watch},
    link::{Link, Order, Word, receive, send},
    rights::keep_nothing,
    scrape,
};
use crate::{
    memory::keep_little_memory,
    session::{host, readable::readable},
};

/// What it is started as.
pub(super) const NAME: &str = "mpiprobe-worker";
/// How often it says that it goes on.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Whether this process is a worker; then it has done its work when this returns. What clients ask for is understood by `parse`.
pub fn work_if_asked(parse: Parse) -> bool {
    if std::env::args_os().next().is_none_or(|name| name != NAME) {
        return false;
    }
    let _ = rustix::thread::set_name(c"mpiprobe-worker");
    if let Err(error) = work(parse) {
        mpiprobe_report::present::say(format_args!("the worker of the service ends: {error}"));
    }
    true
}

fn work(parse: Parse) -> io::Result<()> {
    keep_nothing()?;
    keep_little_memory();
    let supervisor: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "the supervisor says something else");
    let Some((Order::Begin { configuration, surroundings }, content, descriptors)) = receive(supervisor.as_fd())?
    else {
        return Err(missing());
    };
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or_else(missing);
    let (listener, files, programs, port) = (next()?, next()?, next()?, next().ok());
    users::tell(content);
    let (files, programs) = (Link::new(files), Link::new(programs));
    mpiprobe_discover::privileged::ask_instead(Box::new(files));
    mpiprobe_attach::apart::ask_instead(Box::new(programs.clone()));
    mpiprobe_stacks::apart::ask_instead(Box::new(programs));
    read_system();
    confine()?;
    let service = Service::new(Settings { configuration: *configuration, surroundings }, parse);
    let settings = Arc::clone(&service.settings);
    let set = move || settings.lock().unwrap_or_else(PoisonError::into_inner).configuration.clone();
    let (ended, mut summaries) = mpsc::unbounded_channel();
    watch(Arc::clone(&service.board), set, Arc::new(move |job, jobs| (parse.observation)(asked_of(job, jobs))), ended)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let listener = UnixListener::from_std(listener.into())?;
        let mut port = port.map(|port| listen_for_monitoring(port, &service)).transpose()?;
        fcntl_setfl(&supervisor, OFlags::RDWR | OFlags::NONBLOCK)?;
        let orders = readable(supervisor.try_clone()?)?;
        tell(&supervisor, &Word::Ready)?;
        let mut life = interval(SIGN_OF_LIFE);
        let listening = Arc::clone(&service).listen(listener);
        tokio::pin!(listening);
        loop {
            tokio::select! {
                error = &mut listening => return Err(error),
                Some(summary) = summaries.recv() => tell_of_end(&supervisor, summary).await?,
                _ = life.tick() => tell(&supervisor, &Word::Alive)?,
                more = take_orders(&orders, &service, &mut port) => if !more? { return Ok(()) },
            }
        }
    });
    runtime.shutdown_background();
    ended
}

/// What of this system is read once, from files that cannot be opened any more then. `rustix` panics without its part.
fn read_system() {
    let _ = (rustix::param::clock_ticks_per_second(), mpiprobe_attach::possible_processors(), host::boot());
}

fn tell(supervisor: &OwnedFd, word: &Word) -> io::Result<()> {
    send(supervisor.as_fd(), word, &[], &[])
}

/// As soon as the supervisor has taken what was said before.
async fn tell_of_end(supervisor: &OwnedFd, Written { line, table }: Written) -> io::Result<()> {
    tell_at_length(supervisor, &Word::Ended(line), &[]).await?;
    let Some((name, table)) = table else { return Ok(()) };
    match tell_at_length(supervisor, &Word::Table(name), &table).await {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            tracing::warn!("the summary of a job is too long for a table, {} bytes", table.len());
            Ok(())
        }
        told => told,
    }
}

async fn tell_at_length(supervisor: &OwnedFd, word: &Word, content: &[u8]) -> io::Result<()> {
    loop {
        match send(supervisor.as_fd(), word, content, &[]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(Duration::from_millis(10)).await,
            told => return told,
        }
    }
}

/// The observation of a job that nobody has asked for, in the words of the command line. Its ranks do not all begin at once.
fn asked_of(job: &str, jobs: &Jobs) -> Vec<String> {
    let mut words = vec![
        format!("--job={job}"),
        "--wait".into(),
        format!("--functions={}", jobs.functions),
        format!("--max-overhead={}", jobs.max_overhead),
        format!("--interval={}ms", jobs.interval.as_millis()),
    ];
    words.extend(jobs.traffic.then(|| "--traffic".to_owned()));
    words
}

fn listen_for_monitoring(port: OwnedFd, service: &Arc<Service>) -> io::Result<AbortHandle> {
    let listener = TcpListener::from_std(port.into())?;
    Ok(tokio::spawn(scrape::serve(listener, Arc::clone(service))).abort_handle())
}

/// Takes an order; whether more may come.
async fn take_orders(
    orders: &AsyncFd<OwnedFd>,
    service: &Arc<Service>,
    port: &mut Option<AbortHandle>,
) -> io::Result<bool> {
    let mut ready = orders.readable().await?;
    let order = match receive::<Order>(orders.get_ref().as_fd()) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            ready.clear_ready();
            return Ok(true);
        }
        order => order?,
    };
    match order {
        Some((Order::Change { configuration, surroundings }, content, descriptors)) => {
            users::tell(content);
            let other = descriptors.into_iter().next();
            if (other.is_some() || surroundings.metrics.address.is_none())
                && let Some(port) = port.take()
            {
                port.abort();
            }
            if let Some(other) = other {
                *port = Some(listen_for_monitoring(other, service)?);
            }
            let mut settings = service.settings.lock().unwrap_or_else(PoisonError::into_inner);
            *settings = Settings { configuration: *configuration, surroundings };
            Ok(true)
        }
        Some((Order::Begin { .. }, ..)) => Ok(true),
        None => Ok(false),
    }
}
