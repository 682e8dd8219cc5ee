//! The file that implements MPI for the process.

use mpiprobe_discover::{
    MpiLibrary, MpiProcess, Process,
    mappings::Mappings,
    open_mapped,
    open_mapped::{OnDisk, on_disk},
};
use mpiprobe_functions::FunctionSet;
use mpiprobe_model::Check;
use mpiprobe_plan::{ElfFile, Implementation, Library};
use serde_json::json;

use super::{
    code,
    loading::{self, Loading},
    sites,
};

pub(super) fn examine(process: &MpiProcess, library: &MpiLibrary, mappings: &Mappings) -> Vec<Check> {
    let path = library.file.display_path();
    let unreadable = |error: &dyn std::error::Error| {
        let fix = "restart the job, or reinstall the library";
        vec![Check::failed("library", format!("{path} cannot be read"), fix).because(error.to_string())]
    };
    let file = match open_mapped(&process.process, &library.file) {
        Ok(file) => file,
        Err(error) => return vec![Check::failed_by("library", &error)],
    };
    let contents = match ElfFile::new(&file) {
        Ok(contents) => contents,
        Err(error) => return unreadable(&error),
    };
    let parsed = match Library::read(&contents) {
        Ok(parsed) => parsed,
        Err(error) => return unreadable(&error),
    };
    let (default, all) = match (
        sites::plan_of(&parsed, &FunctionSet::default_functions()),
        sites::plan_of(&parsed, &FunctionSet::all()),
    ) {
        (Ok(default), Ok(all)) => (default, all),
        (Err(error), _) | (_, Err(error)) => return unreadable(&error),
    };
    if let Err(error) = contents.was_readable() {
        return unreadable(&error);
    }
    let loading = loading::of(&process.process, mappings, library.file.id);
    vec![
        identity(library, &parsed, loading),
        name_on_disk(&process.process, library),
        sites::of_default(&default.census()),
        sites::of_all(&all.census()),
        code::check(&process.process, (&library.file, &file), &default),
        code::text(&library.file, mappings),
    ]
}

fn identity(library: &MpiLibrary, parsed: &Library<'_>, loading: Option<Loading>) -> Check {
    let path = library.file.display_path();
    let implementation = Implementation::of(parsed);
    let loaded = match loading {
        _ if library.recognised.is_static => ", linked into the program",
        Some(Loading::AtRunTime) => ", loaded at run time",
        Some(Loading::Linked) | None => "",
    };
    let standard = implementation.standard.map(|version| format!(" (MPI {version})")).unwrap_or_default();
    let build_id = parsed.build_id();
    let build = build_id.map_or_else(|| "none".to_owned(), ToOwned::to_owned);
    let id = library.file.id;
    Check::ok("library", format!("{implementation}{standard}{loaded}: {path}, device {id}, build id {build}")).with(
        json!({
            "path": path,
            "file": id,
            "build_id": build_id,
            "soname": parsed.soname().map(|name| mpiprobe_discover::printable(name.as_bytes())),
            "implementation": implementation.to_string(),
            "standard": implementation.standard.map(|version| version.to_string()),
            "static": library.recognised.is_static,
            "loading": loading,
            "stripped": parsed.is_stripped(),
        }),
    )
}

fn name_on_disk(process: &Process, library: &MpiLibrary) -> Check {
    let became = match on_disk(process, &library.file) {
        Ok(OnDisk::Same) => return Check::ok("library-file", "it is still the file of that name"),
        Ok(OnDisk::Replaced) => "replaced",
        Ok(OnDisk::Deleted) => "deleted",
        Err(error) => return Check::failed_by("library-file", &error),
    };
    Check::info("library-file", format!("{became} since the program started"))
        .because("this process is observed with the file it has; processes started now have another")
        .with(json!({ "on_disk": became }))
}
