//! Where the sources of what is embedded are.

use std::path::Path;

/// The workspace that a crate belongs to: the nearest directory above it that has the BPF programs.
pub(crate) fn workspace(crate_directory: &Path) -> &Path {
    crate_directory.ancestors().find(|directory| directory.join("probe-ebpf").is_dir()).unwrap_or(crate_directory)
}
