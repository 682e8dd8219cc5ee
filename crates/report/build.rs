//! Bundles the page of the HTML report (`web/`) by esbuild, if npm has fetched what it consists of (`cargo xtask setup build`).
//! Otherwise the crate is built without it, and says so when somebody asks for such a report.

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What is looked for in a package, the first that is there.
const LICENCES: [&str; 4] = ["LICENSE", "LICENSE.md", "LICENSE.txt", "license"];

fn main() -> Result<(), Box<dyn Error>> {
    let page = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("web");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for input in ["package-lock.json", "src", "node_modules/.package-lock.json"] {
        println!("cargo:rerun-if-changed={}", page.join(input).display());
    }
    let bundle = match esbuild(&page).filter(|_| page.join("node_modules/.package-lock.json").exists()) {
        Some(esbuild) => Some(bundle(&esbuild, &page, &out)?),
        None => None,
    };
    let code = match bundle {
        Some(Bundle { script, style, licences }) => {
            let include =
                |path: &Path| path.to_str().map(|path| format!("include_str!({path:?})")).ok_or("the path is no text");
            let (script, style, licences) = (include(&script)?, include(&style)?, include(&licences)?);
            format!("Some(Bundle {{ script: {script}, style: {style}, licences: {licences} }})")
        }
        None => "None".to_owned(),
    };
    fs::write(out.join("bundle.rs"), code)?;
    Ok(())
}

/// Files that become part of this crate.
struct Bundle {
    script: PathBuf,
    style: PathBuf,
    licences: PathBuf,
}

/// The program itself, which needs no node: npm puts it into a package of its own for each architecture.
fn esbuild(page: &Path) -> Option<PathBuf> {
    let architecture = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let program = page.join(format!("node_modules/@esbuild/linux-{architecture}/bin/esbuild"));
    program.is_file().then_some(program)
}

fn bundle(esbuild: &Path, page: &Path, out: &Path) -> Result<Bundle, Box<dyn Error>> {
    let bundle =
        Bundle { script: out.join("page.js"), style: out.join("page.css"), licences: out.join("licences.txt") };
    let parts = out.join("page.json");
    let run = |arguments: &[String]| -> Result<(), Box<dyn Error>> {
        let output = Command::new(esbuild).args(arguments).arg("--log-level=warning").current_dir(page).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("esbuild cannot bundle the page: {said}").into()) }
    };
    let outfile = |path: &Path| format!("--outfile={}", path.display());
    let of_all = ["--minify".into(), "--charset=utf8".into()];
    let script = ["src/main.js", "--bundle", "--format=iife", "--target=es2022", "--legal-comments=none"];
    let mut arguments: Vec<String> = script.map(ToOwned::to_owned).into();
    arguments.extend([format!("--metafile={}", parts.display()), outfile(&bundle.script)]);
    arguments.extend(of_all.clone());
    run(&arguments)?;
    run(&[&["src/page.css".to_owned(), outfile(&bundle.style)], &of_all[..]].concat())?;
    fs::write(&bundle.licences, licences(page, &parts)?)?;
    Ok(bundle)
}

/// Names, versions and licences of the packages that are in the bundle.
fn licences(page: &Path, parts: &Path) -> Result<String, Box<dyn Error>> {
    let parts: serde_json::Value = serde_json::from_slice(&fs::read(parts)?)?;
    let inputs = parts.get("inputs").and_then(serde_json::Value::as_object).ok_or("esbuild has told no inputs")?;
    let mut texts = BTreeMap::new();
    for input in inputs.keys() {
        let Some((_, rest)) = input.split_once("node_modules/") else { continue };
        let depth = if rest.starts_with('@') { 2 } else { 1 };
        let name = rest.split('/').take(depth).collect::<Vec<_>>().join("/");
        if texts.contains_key(&name) {
            continue;
        }
        let directory = page.join("node_modules").join(&name);
        let manifest: serde_json::Value = serde_json::from_slice(&fs::read(directory.join("package.json"))?)?;
        let text = LICENCES.iter().find_map(|file| fs::read_to_string(directory.join(file)).ok());
        let text = text.ok_or_else(|| format!("{name} has no licence"))?;
        let said = |key: &str| manifest.get(key).and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
        texts.insert(name, (said("version"), said("license"), text));
    }
    let mut listing = String::new();
    for (name, (version, licence, text)) in texts {
        writeln!(listing, "{name} {version} ({licence})\n\n{}\n", text.trim())?;
    }
    Ok(listing)
}
