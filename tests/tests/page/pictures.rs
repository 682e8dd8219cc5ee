//! Pictures of pages in the documents. `cargo xtask docs --screenshots` takes them anew; no two versions of a browser draw the same
//! bits, so that they cannot be compared.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use libtest_mimic::Failed;
use mpiprobe_tests::{browser::Browser, synthetic::Synthetic};

use crate::made::Made;

/// As for all that is written by a program.
const UPDATE: &str = "MPIPROBE_UPDATE_DOCS";
/// Of each, bytes: documents are for slow connections too.
const MOST_BYTES: u64 = 200_000;

/// Names of files, and from which section of the page to which they show it.
const OF_A_RUN: [(&str, [&str; 2]); 2] = [("page", ["top", "timeline"]), ("page-matrix", ["matrix", "matrix"])];
const OF_A_COMPARISON: [(&str, [&str; 2]); 1] = [("page-comparison", ["top", "changes"])];

/// Whether they are there and are pictures, and whether the pages have what they show.
pub(crate) fn current() -> Result<(), Failed> {
    let run = Made::recording("pictured", Synthetic::HYBRID, 24)?;
    let comparison = Made::comparison("pictured_comparison", false)?;
    let places = tempfile::tempdir()?;
    for (made, pictures) in [(run, &OF_A_RUN[..]), (comparison, &OF_A_COMPARISON[..])] {
        for (name, sections) in pictures {
            let kept = images().join(name).with_extension("png");
            let taken = places.path().join(name).with_extension("png");
            Browser::picture(&made.page, &made.json, &taken, *sections)?;
            if env::var_os(UPDATE).is_some() {
                fs::copy(&taken, &kept)?;
            }
            let (is, would_be) = (size(&kept)?, size(&taken)?);
            // Fonts differ, too.
            let is_alike = is.0 == would_be.0 && is.1.abs_diff(would_be.1) * 5 < would_be.1;
            if !is_alike {
                let message = format!(
                    "{} has {is:?} pixels, and the page {would_be:?}: take it anew with cargo xtask docs --screenshots",
                    kept.display()
                );
                return Err(message.into());
            }
            let bytes = kept.metadata()?.len();
            if bytes > MOST_BYTES {
                return Err(format!("{} has {bytes} bytes", kept.display()).into());
            }
        }
    }
    Ok(())
}

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images")
}

/// Width and height of a PNG, pixels: the first two words of its first chunk.
fn size(path: &Path) -> Result<(u32, u32), Failed> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    let is_png = bytes.starts_with(b"\x89PNG\r\n\x1a\n");
    let size = word(16).zip(word(20)).filter(|_| is_png);
    size.ok_or_else(|| format!("{} is no PNG", path.display()).into())
}
