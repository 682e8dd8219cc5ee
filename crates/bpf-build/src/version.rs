//! What a compiler says of itself.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Missing;

/// The major version of the LLVM inside `rustc`.
pub(crate) fn llvm_major(rustc: &Path) -> Result<u32, Missing> {
    let unusable = |reason: String| Missing::UnusableCompiler { rustc: rustc.to_owned(), reason };
    let output = Command::new(rustc).arg("-vV").stdin(Stdio::null()).output();
    let output = output.map_err(|error| unusable(error.to_string()))?;
    if !output.status.success() {
        return Err(unusable(output.status.to_string()));
    }
    parse_llvm_major(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| unusable("it does not name its LLVM version".into()))
}

fn parse_llvm_major(verbose_version: &str) -> Option<u32> {
    let version = verbose_version.lines().find_map(|line| line.strip_prefix("LLVM version:"))?;
    version.trim().split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse_llvm_major;

    #[test]
    fn llvm_version_is_found_among_the_other_lines() {
        let text = "rustc 1.96.0 (ac68faa20 2026-05-25)\nbinary: rustc\nrelease: 1.96.0\nLLVM version: 22.1.8\n";
        assert_eq!(parse_llvm_major(text), Some(22));
    }

    #[test]
    fn other_code_generators_have_no_llvm_version() {
        assert_eq!(parse_llvm_major("rustc 1.96.0\nrelease: 1.96.0\n"), None);
        assert_eq!(parse_llvm_major("LLVM version: unknown\n"), None);
    }
}
