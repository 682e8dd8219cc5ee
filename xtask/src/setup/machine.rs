//! Which Debian packages the machine has.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use super::requirement::{Check, Requirement};

/// Installed packages of those that were asked for, with (major, minor) of their versions.
#[derive(Debug)]
pub(crate) struct Machine {
    installed: HashMap<String, (u32, u32)>,
}

impl Machine {
    /// Asks dpkg once; where there is no dpkg, no package is installed.
    pub(crate) fn look(required: &[&Requirement]) -> Self {
        let mut query = Command::new("dpkg-query");
        query.args(["--show", "--showformat=${Package} ${db:Status-Status} ${Version}\n"]);
        query.args(required.iter().map(|requirement| requirement.package));
        // It fails if one package is unknown, but tells of the others.
        let output = query.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Self {
        let installed = text.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let (package, status, version) = (words.next()?, words.next()?, words.next()?);
            (status == "installed").then_some((package.to_owned(), parse_version(version)?))
        });
        Self { installed: installed.collect() }
    }

    /// Whether it has what is required.
    pub(crate) fn has(&self, requirement: &Requirement) -> bool {
        match requirement.check {
            Check::Command(program) => crate::command::is_in_path(program),
            Check::File(path) => std::path::Path::new(path).exists(),
            Check::Package(major, minor) => {
                self.version_of(requirement.package).is_some_and(|version| version >= (major, minor))
            }
        }
    }

    fn version_of(&self, package: &str) -> Option<(u32, u32)> {
        self.installed.get(package).copied()
    }
}

/// The first two numbers of a Debian version `[epoch:]upstream[-revision]` (deb-version(7)).
pub(crate) fn parse_version(version: &str) -> Option<(u32, u32)> {
    let upstream = version.split_once(':').map_or(version, |(_epoch, rest)| rest);
    let mut numbers = upstream.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::{Machine, parse_version};

    #[test]
    fn versions_are_compared_by_their_upstream_part() {
        assert_eq!(parse_version("1.96.0+dfsg1-1~deb12u2"), Some((1, 96)));
        assert_eq!(parse_version("1:22.1.8-1~deb12u1"), Some((22, 1)));
        assert_eq!(parse_version("4:12.2.0-3"), Some((12, 2)));
        assert_eq!(parse_version("7-1"), Some((7, 1)));
        assert_eq!(parse_version("7"), Some((7, 0)));
        assert_eq!(parse_version("unknown"), None);
        assert_eq!(parse_version(""), None);
    }

    #[test]
    fn removed_packages_are_not_installed() {
        let machine = Machine::parse(
            "rustc-web installed 1.96.0+dfsg1-1~deb12u2\nmpich config-files 4.0.2-3\nlibllvm22 installed 1:22.1.8-1\n\
             gfortran not-installed \nbroken\n",
        );
        assert_eq!(machine.version_of("rustc-web"), Some((1, 96)));
        assert_eq!(machine.version_of("libllvm22"), Some((22, 1)));
        assert_eq!(machine.version_of("mpich"), None);
        assert_eq!(machine.version_of("gfortran"), None);
        assert_eq!(machine.version_of("broken"), None);
    }
}
