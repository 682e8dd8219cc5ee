//! What an administrator sets: one file, which root alone may have written.

use std::{
    fs::File,
    io::Read as _,
    net::SocketAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use mpiprobe_model::filter::bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{SOCKET, error::ServiceError};
use crate::session::{MaxOverhead, OverheadLimit};

/// Bytes of a file; what is longer is none that a person has written.
const LONGEST: u64 = 256 << 10;
/// Between two looks at a job, and at who is there.
const SHORTEST: Duration = Duration::from_millis(100);
/// Series of a node: fewer have no room for the service's own and one job's, more are nothing that a node should be asked for.
const SERIES: [u32; 2] = [100, 10_000];

/// All of it. Whatever is missing in the file has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Configuration {
    /// Where clients find it, unless systemd listens.
    #[serde(deserialize_with = "path")]
    pub socket: PathBuf,
    /// As whom it runs if root starts it.
    pub user: String,
    /// Whose members see all jobs; none: root alone does.
    pub admin_group: Option<String>,
    pub quota: Quota,
    pub jobs: Jobs,
    pub metrics: Metrics,
    pub summaries: Summaries,
}

/// What is kept of jobs that have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Summaries {
    /// To which a line is added; `None`: nothing is kept.
    #[serde(deserialize_with = "path_if_any")]
    pub file: Option<PathBuf>,
    /// A directory, for a file of Parquet for each job; `None`: there are none.
    #[serde(deserialize_with = "parquet")]
    pub parquet: Option<PathBuf>,
    /// Of a file that is made.
    #[serde(deserialize_with = "mode")]
    pub mode: u32,
}

/// What the service observes unasked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Jobs {
    /// Every job, from when it is seen until its end.
    pub observe: bool,
    /// Of these users only, by name or number; empty: of all.
    pub users: Vec<String>,
    /// How often it looks which jobs there are.
    #[serde(deserialize_with = "period", serialize_with = "as_text")]
    pub look_every: Duration,
    /// How often it looks at what each of them has done.
    #[serde(deserialize_with = "period", serialize_with = "as_text")]
    pub interval: Duration,
    /// Functions, as `--functions` has them.
    #[serde(deserialize_with = "functions")]
    pub functions: String,
    /// Also what calls move.
    pub traffic: bool,
    /// What that may cost each rank, as `--max-overhead` has it.
    #[serde(deserialize_with = "overhead", serialize_with = "overhead_as_text")]
    pub max_overhead: MaxOverhead,
    /// Jobs at once.
    pub most: u32,
    /// Tables of all of them, bytes.
    #[serde(deserialize_with = "size")]
    pub tables: u64,
}

/// What monitoring is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Metrics {
    /// Where everybody may read it; `None`: nowhere but at the socket, and by those who see all jobs.
    pub address: Option<SocketAddr>,
    /// Whose a job is, by name.
    pub user: bool,
    /// Series of this node.
    #[serde(deserialize_with = "series")]
    pub series: u32,
}

/// What one user may have of the service, all clients together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Quota {
    /// Connections at once, one at least.
    #[serde(deserialize_with = "connections")]
    pub connections: u32,
    /// Observations at once.
    pub observations: u32,
    /// Tables of these, bytes.
    #[serde(deserialize_with = "size")]
    pub tables: u64,
    /// Tables of all users, bytes.
    #[serde(deserialize_with = "size")]
    pub tables_of_all: u64,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            socket: SOCKET.into(),
            user: "mpiprobe".into(),
            admin_group: None,
            quota: Quota::default(),
            jobs: Jobs::default(),
            metrics: Metrics::default(),
            summaries: Summaries::default(),
        }
    }
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            observe: false,
            users: Vec::new(),
            look_every: Duration::from_secs(2),
            interval: Duration::from_secs(10),
            functions: "default".into(),
            traffic: false,
            max_overhead: MaxOverhead::Limit(OverheadLimit { percent: 1.0, period: Duration::from_mins(1) }),
            most: 16,
            tables: 512 << 20,
        }
    }
}

impl Default for Summaries {
    fn default() -> Self {
        Self { file: None, parquet: None, mode: 0o600 }
    }
}

impl Summaries {
    /// Whether anything is kept.
    pub(super) fn are_kept(&self) -> bool {
        self.file.is_some() || self.parquet.is_some()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self { address: None, user: false, series: 400 }
    }
}

impl Default for Quota {
    fn default() -> Self {
        Self { connections: 16, observations: 4, tables: 256 << 20, tables_of_all: 1 << 30 }
    }
}

impl Configuration {
    /// Reads a file that must be there.
    pub fn read(path: &Path) -> Result<Self, ServiceError> {
        let failed = |reason: String| ServiceError::Configuration { path: path.into(), reason };
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let state = file.metadata().map_err(|error| failed(error.to_string()))?;
        let is_ours = |user: u32| user == 0 || user == rustix::process::geteuid().as_raw();
        if !is_ours(state.uid()) || state.mode() & 0o022 != 0 {
            return Err(failed("it must belong to root, and nobody else may write it (chown root, chmod go-w)".into()));
        }
        let mut text = String::new();
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        if text.len() as u64 > LONGEST {
            return Err(failed(format!("it is longer than {LONGEST} bytes")));
        }
        toml::from_str(&text).map_err(|error| failed(error.to_string().trim_end().to_owned()))
    }

    /// The same of the file at its usual place, where there may be none.
    pub fn read_usual(path: &Path) -> Result<Self, ServiceError> {
        if path.exists() { Self::read(path) } else { Ok(Self::default()) }
    }
}

/// A number of bytes, or text such as `64MiB`.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Number(u64),
        Text(String),
    }
    match Size::deserialize(deserializer)? {
        Size::Number(number) => Ok(number),
        Size::Text(text) => bytes(&text).ok_or_else(|| D::Error::custom("a size, such as 64MiB")),
    }
}

/// A time, such as `10s`.
fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let parsed = humantime::parse_duration(&String::deserialize(deserializer)?);
    let is_long_enough = |period: &Duration| *period >= SHORTEST;
    parsed.ok().filter(is_long_enough).ok_or_else(|| D::Error::custom("a time of at least 100ms, such as 10s"))
}

fn as_text<S: Serializer>(period: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*period))
}

fn functions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let selection = String::deserialize(deserializer)?;
    mpiprobe_functions::select(&selection).map_err(D::Error::custom)?;
    Ok(selection)
}

/// A number, or text such as `1%` and `off`.
fn overhead<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MaxOverhead, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Typed {
        Whole(u32),
        Number(f64),
        Text(String),
    }
    let text = match Typed::deserialize(deserializer)? {
        Typed::Whole(number) => number.to_string(),
        Typed::Number(number) => number.to_string(),
        Typed::Text(text) => text,
    };
    text.parse().map_err(D::Error::custom)
}

fn overhead_as_text<S: Serializer>(limit: &MaxOverhead, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(limit)
}

/// One that means the same file wherever the service was started.
fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    absolute(PathBuf::deserialize(deserializer)?)
}

fn path_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    Option::deserialize(deserializer)?.map(absolute).transpose()
}

fn absolute<E: serde::de::Error>(path: PathBuf) -> Result<PathBuf, E> {
    if path.is_absolute() { Ok(path) } else { Err(E::custom("a path from / on")) }
}

fn connections<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let connections = u32::deserialize(deserializer)?;
    // Nobody could ask it anything, nor how it is.
    if connections > 0 { Ok(connections) } else { Err(D::Error::custom("one connection at least")) }
}

fn parquet<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let directory = path_if_any(deserializer)?;
    if directory.is_some() && !cfg!(feature = "parquet") {
        return Err(D::Error::custom("this mpiprobe was built without Parquet (cargo feature `parquet`)"));
    }
    Ok(directory)
}

/// Nobody else than the service may write it.
fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let mode = u32::deserialize(deserializer)?;
    let is_possible = mode & !0o644 == 0 && mode & 0o600 == 0o600;
    if is_possible { Ok(mode) } else { Err(D::Error::custom("0o600, 0o640 or 0o644")) }
}

fn series<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let [fewest, most] = SERIES;
    let series = u32::deserialize(deserializer)?;
    let is_possible = (fewest..=most).contains(&series);
    if is_possible { Ok(series) } else { Err(D::Error::custom(format!("{fewest} to {most} series"))) }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn read(text: &str, mode: u32) -> Result<Configuration, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Configuration::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_missing_has_its_default() {
        assert_eq!(read("", 0o644).unwrap(), Configuration::default());
        let set = read("admin-group = \"staff\"\n[quota]\ntables = \"64MiB\"\nobservations = 2\n", 0o644).unwrap();
        assert_eq!(
            (set.admin_group.as_deref(), set.quota.tables, set.quota.observations),
            (Some("staff"), 64 << 20, 2)
        );
        assert_eq!(set.quota.connections, Quota::default().connections);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let told = read("admin-grup = \"staff\"\n", 0o644).unwrap_err();
        assert!(told.contains("service.toml") && told.contains("admin-grup") && told.contains("line 1"), "{told}");
        for (text, said) in [
            ("[quota]\ntables = \"much\"\n", "such as 64MiB"),
            ("[jobs]\ninterval = \"1us\"\n", "at least 100ms"),
            ("[jobs]\nfunctions = \"MPI_Sned\"\n", "MPI_Sned"),
            ("[jobs]\nmax-overhead = 0\n", "from 0.01 to 100"),
            ("[metrics]\nseries = 7\n", "100 to 10000 series"),
            ("socket = \"mpiprobe.sock\"\n", "a path from / on"),
            ("[summaries]\nfile = \"jobs.jsonl\"\n", "a path from / on"),
            ("[quota]\nconnections = 0\n", "one connection at least"),
            ("[metrics]\naddress = \"somewhere\"\n", "socket address"),
            ("[summaries]\nmode = 0o666\n", "0o600, 0o640 or 0o644"),
        ] {
            let told = read(text, 0o644).unwrap_err();
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn a_file_that_others_may_write_is_not_believed() {
        assert!(read("", 0o666).unwrap_err().contains("nobody else may write it"));
    }

    #[test]
    fn what_the_documents_show_are_the_defaults() {
        let text = include_str!("../../../docs/service.md");
        let block = text.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
        assert_eq!(read(block, 0o644).unwrap(), Configuration::default());
        let example = include_str!("../../systemd/service.toml");
        let is_set = |line: &str| {
            line.starts_with("# ")
                && line.contains(" = ")
                && !line.contains("hpcadmin")
                && !line.contains("9464")
                && !line.contains("/var/log/")
        };
        let uncommented = example.lines().map(|line| if is_set(line) { &line[2..] } else { line });
        let uncommented = uncommented.collect::<Vec<_>>().join("\n");
        assert!(uncommented.contains("\nseries = 400"), "{uncommented}");
        assert_eq!(read(&uncommented, 0o644).unwrap(), Configuration::default());
    }

    #[test]
    fn it_is_passed_on_as_it_is() {
        let jobs = Jobs { interval: Duration::from_millis(1500), ..Jobs::default() };
        let metrics = Metrics { address: "[::1]:9464".parse().ok(), ..Metrics::default() };
        let set = Configuration { admin_group: Some("staff".into()), jobs, metrics, ..Configuration::default() };
        let passed = serde_json::from_str(&serde_json::to_string(&set).unwrap()).unwrap();
        assert_eq!(set, passed);
    }
}
