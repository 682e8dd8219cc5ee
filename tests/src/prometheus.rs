//! A server of Prometheus's, which scrapes one node.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::bed::wait_until;
use crate::debian;
use crate::{Profiler, ProfilerError};

/// What monitoring calls nodes' services.
pub const JOB: &str = "mpiprobe";

/// Ended when dropped.
#[derive(Debug)]
pub struct Prometheus {
    _server: Profiler,
    address: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes this address, and waits until it can be asked.
    pub fn start(target: &str) -> Result<Self, ProfilerError> {
        let failed = || ProfilerError::system("making a place for Prometheus");
        let folder = tempfile::tempdir().map_err(failed())?;
        let configuration = format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nscrape_configs:\n  - job_name: {JOB}\n    \
             static_configs: [{{ targets: [\"{target}\"] }}]\n"
        );
        fs::write(folder.path().join("prometheus.yml"), configuration).map_err(failed())?;
        let program = debian::program("prometheus").ok_or(std::io::ErrorKind::NotFound);
        let program = program.map_err(|kind| ProfilerError::system("prometheus")(kind.into()))?;
        // It ends with the trial, whatever ends that.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program).arg("--config.file=prometheus.yml");
        command.args(["--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0"]).current_dir(folder.path());
        let mut server = Profiler::spawn(command)?;
        let line = server.wait_for("msg=\"Listening on\" address=")?;
        let address = line.rsplit('=').next().unwrap_or_default().trim().to_owned();
        let new = Self { _server: server, address, _folder: folder };
        // It may have said so before.
        wait_until("Prometheus to be ready", || Ok(new.get("/-/ready").is_ok_and(|said| said.contains(" 200 OK"))))?;
        Ok(new)
    }

    /// The whole answer to a request.
    fn get(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// What it answers to a query: values with their labels.
    pub fn query(&self, expression: &str) -> std::io::Result<Vec<(Value, f64)>> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let mut encoded = String::new();
        for byte in expression.bytes() {
            if plain(byte) {
                encoded.push(char::from(byte));
            } else {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        let answer = self.get(&format!("/api/v1/query?query={encoded}"))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let body: Value = serde_json::from_str(body)?;
        let rows = body.pointer("/data/result").and_then(Value::as_array);
        let rows = rows.ok_or_else(|| std::io::Error::other(format!("{expression}: {body}")))?;
        let row = |row: &Value| {
            let value = row.pointer("/value/1")?.as_str()?.parse().ok()?;
            Some((row.get("metric")?.clone(), value))
        };
        Ok(rows.iter().filter_map(row).collect())
    }

    /// The one value that it answers, or none.
    pub fn value(&self, expression: &str) -> std::io::Result<Option<f64>> {
        Ok(match self.query(expression)?.as_slice() {
            [(_, value)] => Some(*value),
            _ => None,
        })
    }
}
