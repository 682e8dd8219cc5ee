//! From a profile to the text of the page.

use std::io::{self, Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use flate2::{Compression, write::ZlibEncoder};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::data::{Data, Page};

/// What shows the data: made of `web/` by the build script.
struct Bundle {
    script: &'static str,
    style: &'static str,
    /// Of the libraries in it.
    licences: &'static str,
}

/// `None`: it was built without.
const BUNDLE: Option<Bundle> = include!(concat!(env!("OUT_DIR"), "/bundle.rs"));

/// Much smaller than the next lower one, and fast enough for the largest reports.
const LEVEL: u32 = 5;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    #[error(
        "this mpiprobe was built without the libraries that the HTML report consists of: `cargo xtask setup build` fetches them \
         from npm; then build it again"
    )]
    NotBuilt,
    #[error("the data of the page cannot be written")]
    Data(#[from] io::Error),
}

/// Whether HTML reports can be written.
pub const fn has_page() -> bool {
    BUNDLE.is_some()
}

impl Page<'_> {
    /// The whole page.
    pub fn html(&self) -> Result<String, HtmlError> {
        let data = Data::of(self);
        assembled(&data.title, data.mpiprobe_version, &data)
    }
}

/// A page that holds this data, which is shown by `web/src/main.js`.
pub(crate) fn assembled(title: &str, version: &str, data: &impl Serialize) -> Result<String, HtmlError> {
    let bundle = BUNDLE.ok_or(HtmlError::NotBuilt)?;
    let packed = packed(data)?;
    let script_hash = BASE64.encode(Sha256::digest(bundle.script));
    let style_hash = BASE64.encode(Sha256::digest(bundle.style));
    let (title, version) = (escaped(title), escaped(version));
    let Bundle { script, style, licences } = bundle;
    // Of a comment, only its end could end it.
    let licences = licences.replace("--", "- -");
    Ok(format!(
        r#"<!doctype html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{script_hash}'; style-src 'sha256-{style_hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="mpiprobe {version}">
<title>{title}: mpiprobe</title>
<style>{style}</style>
</head>
<body>
<main><h1>{title}</h1><p>The page is being unpacked.</p>
<noscript><p>This page needs JavaScript, which it holds itself. As text: mpiprobe report FILE, mpiprobe compare</p></noscript></main>
<script type="application/octet-stream" id="data">{packed}</script>
<script>{script}</script>
<!-- Libraries in this page, with their licences:

{licences}
-->
</body>
</html>
"#
    ))
}

fn packed(data: &impl Serialize) -> io::Result<String> {
    let mut deflated = io::BufWriter::with_capacity(1 << 16, ZlibEncoder::new(Vec::new(), Compression::new(LEVEL)));
    serde_json::to_writer(&mut deflated, data)?;
    deflated.flush()?;
    let deflated = deflated.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(BASE64.encode(deflated))
}

/// As text of HTML, and as the value of an attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        assert_eq!(
            escaped("</title><script a='b' c=\"d\">&"),
            "&lt;/title&gt;&lt;script a=&#39;b&#39; c=&quot;d&quot;&gt;&amp;"
        );
    }
}
