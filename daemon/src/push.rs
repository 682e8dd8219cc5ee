//! `mpiprobe push`: hands what the node service tells monitoring on to a collector of OpenTelemetry's, by OTLP over HTTP
//! (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP"). The service itself makes no connections; this is a process of its own, which needs no
//! rights and knows nothing of what it hands on.
//!
//! Counters are sums since the service began, so that what a collector has not taken costs points of time, and no count.

use std::{io, path::PathBuf, str::FromStr, time::Duration};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    body::Bytes,
    header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER},
};
use mpiprobe_discover::printable;
use mpiprobe_report::present::say;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use percent_encoding::percent_decode_str;
use prost::Message as _;
use thiserror::Error;
use tokio::{
    net::TcpStream,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use crate::asking::{AskError, Service, ask};

/// For each of the two ends to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// No answer takes more, bytes.
const LONGEST: usize = 16 << 20;
/// Whatever a collector says, nobody waits longer.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// Of what somebody else has written, bytes.
const LONGEST_SAID: usize = 200;
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// Where OTLP has metrics, below what a collector's address names.
const OF_METRICS: &str = "/v1/metrics";

/// What is handed on, and where to.
#[derive(Clone, Debug)]
pub struct Push {
    pub from: Origin,
    pub to: Collector,
    pub interval: Duration,
    /// One time only.
    pub once: bool,
}

/// Where the service tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Socket(PathBuf),
    Port(Address),
}

/// A collector, and what it wants to be told besides.
#[derive(Clone, Debug)]
pub struct Collector {
    pub address: Address,
    pub headers: HeaderMap,
}

/// An address by `http:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    path: String,
}

/// Why an address, or a header, is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadAddress {
    #[error("{0:?} is no address: name one as http://localhost:4318")]
    Address(String),
    #[error(
        "{0:?} wants encryption, which mpiprobe does not do: name a collector on this node (http://localhost:4318), and have it pass on what \
         it gets"
    )]
    Encrypted(String),
    #[error("OTEL_EXPORTER_OTLP_HEADERS holds {0:?}, which is no NAME=VALUE of a header")]
    Header(String),
}

/// Why nothing has been handed on.
#[derive(Debug, Error)]
pub enum PushError {
    #[error(transparent)]
    Service(#[from] AskError),
    #[error("{who} at {address} does not answer: {source}")]
    Silent { who: &'static str, address: Address, source: io::Error },
    #[error("{who} at {address} answers {status}{said}")]
    Refused { who: &'static str, address: Address, status: StatusCode, said: String, again_after: Option<Duration> },
    #[error("the collector at {address} has not taken {rejected} figures{said}")]
    Rejected { address: Address, rejected: i64, said: String },
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let none = || BadAddress::Address(text.into());
        let uri: Uri = text.parse().map_err(|_| none())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(BadAddress::Encrypted(text.into())),
            _ => return Err(none()),
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(none)?;
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').into(),
            port: uri.port_u16().unwrap_or(80),
            path: uri.path().trim_end_matches('/').into(),
        })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

impl Address {
    /// With this at its end.
    fn with(mut self, path: &str) -> Self {
        if !self.path.ends_with(path) {
            self.path.push_str(path);
        }
        self
    }

    fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl Origin {
    /// The service's port for monitoring.
    pub fn port(address: Address) -> Self {
        Self::Port(address.with("/metrics"))
    }
}

impl Collector {
    /// The one that is named, or that the variables name by which programs with OpenTelemetry are told (its specification,
    /// "OTLP Exporter Configuration"), or the one on this machine.
    pub fn find(named: Option<Address>, variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadAddress> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let address = match (named, variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")) {
            (Some(named), _) => named.with(OF_METRICS),
            // This one is taken as it is.
            (None, Some(whole)) => whole.trim().parse()?,
            (None, None) => {
                let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
                base.as_deref().map_or("http://localhost:4318", str::trim).parse::<Address>()?.with(OF_METRICS)
            }
        };
        let headers = variable("OTEL_EXPORTER_OTLP_METRICS_HEADERS").or_else(|| variable("OTEL_EXPORTER_OTLP_HEADERS"));
        Ok(Self { address, headers: headers_of(&headers.unwrap_or_default())? })
    }
}

/// `name=value,other=value`, values with `%20` and their like.
fn headers_of(text: &str) -> Result<HeaderMap, BadAddress> {
    let mut headers = HeaderMap::new();
    for one in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let header = || {
            let (name, value) = one.split_once('=')?;
            let value: Vec<u8> = percent_decode_str(value.trim()).collect();
            let mut value = HeaderValue::from_bytes(&value).ok()?;
            // Such as a key, which is not for a log.
            value.set_sensitive(true);
            Some((name.trim().parse::<HeaderName>().ok()?, value))
        };
        // Not its value: what is wrong is mostly the name, and the value may be a secret.
        let (name, value) = header()
            .ok_or_else(|| BadAddress::Header(one.split_once('=').map_or(one, |(name, _)| name).trim().to_owned()))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Hands figures on until somebody ends it, or once.
pub async fn run(push: &Push) -> Result<(), PushError> {
    if push.once {
        return hand_on(push).await;
    }
    say(format_args!("figures of this node go to {} every {} s", push.to.address, push.interval.as_secs_f64()));
    let mut turns = interval(push.interval);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failures = Failures::default();
    loop {
        turns.tick().await;
        let done = hand_on(push).await;
        if let Some(said) = failures.told(&done) {
            say(said);
        }
        if let Err(PushError::Refused { again_after: Some(wait), .. }) = done {
            sleep(wait).await;
        }
    }
}

/// What has gone wrong since it last went well, so that it is not said each time.
#[derive(Debug, Default)]
struct Failures {
    number: u64,
    last: String,
}

impl Failures {
    /// What is to be said now.
    fn told(&mut self, done: &Result<(), PushError>) -> Option<String> {
        match done {
            Ok(()) if self.number == 0 => None,
            Ok(()) => {
                let before = std::mem::take(self);
                Some(format!(
                    "figures are handed on again; {} times they were not, which costs no count",
                    before.number
                ))
            }
            Err(error) => {
                self.number += 1;
                let said = error.to_string();
                let is_new = said != self.last;
                self.last.clone_from(&said);
                is_new.then(|| format!("{said}; they are handed on as soon as it goes again"))
            }
        }
    }
}

async fn hand_on(push: &Push) -> Result<(), PushError> {
    let figures = figures_of(&push.from).await?;
    let Collector { address, headers } = &push.to;
    let mut request = Request::new(Full::new(figures));
    *request.method_mut() = Method::POST;
    request.headers_mut().extend(headers.clone());
    request.headers_mut().insert(CONTENT_TYPE, PROTOBUF);
    let answer = exchange("the collector", address, request).await?;
    // One that says something else has taken them.
    let taken = ExportMetricsServiceResponse::decode(answer).ok().and_then(|answer| answer.partial_success);
    match taken {
        Some(partial) if partial.rejected_data_points > 0 => Err(PushError::Rejected {
            address: address.clone(),
            rejected: partial.rejected_data_points,
            said: said(partial.error_message.as_bytes()),
        }),
        _ => Ok(()),
    }
}

async fn figures_of(origin: &Origin) -> Result<Bytes, PushError> {
    match origin {
        Origin::Socket(socket) => Ok(Service::at(socket)?.get_as("/metrics", PROTOBUF).await?),
        Origin::Port(address) => {
            let mut request = Request::new(Full::default());
            request.headers_mut().insert(ACCEPT, PROTOBUF);
            exchange("the service", address, request).await
        }
    }
}

/// Makes a connection, asks, and gives the answer, if it is one.
async fn exchange(who: &'static str, address: &Address, mut request: Request<Full<Bytes>>) -> Result<Bytes, PushError> {
    let silent = |source| PushError::Silent { who, address: address.clone(), source };
    let path = if address.path.is_empty() { "/" } else { &address.path };
    *request.uri_mut() = path.parse().map_err(|_| silent(io::ErrorKind::InvalidInput.into()))?;
    let host = HeaderValue::try_from(address.authority()).map_err(|_| silent(io::ErrorKind::InvalidInput.into()))?;
    request.headers_mut().insert(HOST, host);
    let exchanged = async {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        let (answer, _connection) = ask(stream, request).await.map_err(io::Error::other)?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LONGEST).collect().await.map_err(io::Error::other)?;
        Ok((head, body.to_bytes()))
    };
    let late = || silent(io::ErrorKind::TimedOut.into());
    let (head, body) = timeout(PATIENCE, exchanged).await.map_err(|_| late())?.map_err(&silent)?;
    if head.status.is_success() {
        return Ok(body);
    }
    let seconds = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Err(PushError::Refused {
        who,
        address: address.clone(),
        status: head.status,
        said: match head.headers.get(CONTENT_TYPE) {
            Some(kind) if *kind == PROTOBUF => said(Status::decode(body).unwrap_or_default().message.as_bytes()),
            _ => said(&body),
        },
        again_after: seconds.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT)),
    })
}

/// Why a collector has refused something (`google.rpc.Status`, as much of it as is shown).
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// The first line of what somebody else has written, to be put behind what is said.
fn said(text: &[u8]) -> String {
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let first = first.get(..LONGEST_SAID).unwrap_or(first);
    if first.is_empty() { String::new() } else { format!(": {}", printable(first)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const WHOLE: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_read_and_what_is_none_is_refused() {
        for (text, shown) in [
            ("http://localhost:4318", "http://localhost:4318"),
            ("http://[::1]:4318/", "http://[::1]:4318"),
            ("http://collector/otlp/", "http://collector:80/otlp"),
        ] {
            assert_eq!(address(text).to_string(), shown);
        }
        for text in ["", "localhost", "localhost:4318", "ftp://x", "http://", "http:// x", "/run/socket"] {
            assert!(matches!(text.parse::<Address>(), Err(BadAddress::Address(_))), "{text}");
        }
        assert!(matches!("https://x".parse::<Address>(), Err(BadAddress::Encrypted(_))));
    }

    #[test]
    fn a_collector_is_found_as_programs_with_opentelemetry_find_it() {
        let found = |named: Option<&str>, set: &[(&str, &str)]| {
            let variable = |name: &str| set.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned());
            Collector::find(named.map(address), variable).map(|found| found.address.to_string())
        };
        for (named, set, expected) in [
            (None, &[][..], "http://localhost:4318/v1/metrics"),
            (None, &[(BASE, "")], "http://localhost:4318/v1/metrics"),
            (None, &[(BASE, "http://x:1/")], "http://x:1/v1/metrics"),
            (None, &[(BASE, "http://x:1"), (WHOLE, "http://y:2/in")], "http://y:2/in"),
            (Some("http://z:3"), &[(WHOLE, "http://y:2/in")], "http://z:3/v1/metrics"),
            (Some("http://z:3/v1/metrics"), &[], "http://z:3/v1/metrics"),
        ] {
            assert_eq!(found(named, set).unwrap(), expected);
        }
        assert!(found(None, &[(BASE, "https://x")]).is_err());
    }

    #[test]
    fn headers_are_read_and_never_shown() {
        let headers = headers_of("api-key=a%20b, X-Scope = one=two,").unwrap();
        assert_eq!(headers["api-key"], "a b");
        assert_eq!(headers["x-scope"], "one=two");
        assert!(!format!("{headers:?}").contains("a b"));
        assert_eq!(headers_of("no name=secret"), Err(BadAddress::Header("no name".into())));
        assert_eq!(headers_of("alone"), Err(BadAddress::Header("alone".into())));
    }

    #[test]
    fn it_is_said_once_what_goes_wrong_and_once_that_it_goes_again() {
        let mut failures = Failures::default();
        let silent = |kind: io::ErrorKind| {
            Err(PushError::Silent { who: "the collector", address: address("http://x"), source: kind.into() })
        };
        assert_eq!(failures.told(&Ok(())), None);
        assert!(failures.told(&silent(io::ErrorKind::TimedOut)).is_some());
        assert_eq!(failures.told(&silent(io::ErrorKind::TimedOut)), None);
        assert!(failures.told(&silent(io::ErrorKind::ConnectionRefused)).is_some());
        assert!(failures.told(&Ok(())).unwrap().contains("3 times"));
        assert_eq!(failures.told(&Ok(())), None);
    }

    #[test]
    fn what_others_have_written_is_shown_as_one_harmless_line() {
        assert_eq!(said(b"no such tenant \nmore"), ": no such tenant");
        assert_eq!((said(b""), said(b"\nmore")), (String::new(), String::new()));
        assert_eq!(said(b"\x1b[2J"), ": \\u{1b}[2J");
        assert!(said(&[b'x'; 1000]).len() < 300);
    }

    #[test]
    fn the_reason_of_a_refusal_is_read() {
        // As a receiver of OTLP answers: code 3, and a message.
        let status = Status::decode(&b"\x08\x03\x12\x03bad"[..]).unwrap();
        assert_eq!(status.message, "bad");
    }
}
