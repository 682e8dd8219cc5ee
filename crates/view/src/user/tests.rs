//! Files of the user's, and of others.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use mpiprobe_discover::files::{self, Access, Directory};
use tempfile::{TempDir, tempdir};

use super::{Config, FileError, Files, SavedView, save::save};
use crate::content::Screen;

fn home() -> (TempDir, Files) {
    let home = tempdir().unwrap();
    let files = files(home.path());
    (home, files)
}

fn files(home: &Path) -> Files {
    Files::new(&|name| (name == "HOME").then(|| home.to_str().unwrap().to_owned()))
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn filters_are_remembered_for_nobody_else() {
    let (home, files) = home();
    assert_eq!(files.history().unwrap().to_text(), "");
    files.remember("rank == 1").unwrap();
    files.remember("rank == 2").unwrap();
    files.remember("rank == 1").unwrap();
    let file = home.path().join(".local/state/mpiprobe/history");
    assert_eq!(fs::read_to_string(&file).unwrap(), "rank == 2\nrank == 1\n");
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert_eq!(files.history().unwrap().back(1), Some("rank == 1"));
    let names: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing else is left behind");
}

#[test]
fn variables_say_where() {
    let (home, state) = (tempdir().unwrap(), tempdir().unwrap());
    let variables = |name: &str| match name {
        "HOME" => Some(home.path().to_str().unwrap().to_owned()),
        "XDG_STATE_HOME" => Some(state.path().to_str().unwrap().to_owned()),
        // Relative ones do not count.
        _ => Some("config".into()),
    };
    let files = Files::new(&variables);
    files.remember("rank == 1").unwrap();
    files.save_view("a", &SavedView::default()).unwrap();
    assert!(state.path().join("mpiprobe/history").exists());
    assert!(home.path().join(".config/mpiprobe/config.toml").exists());
    let nowhere = Files::new(&|_| None);
    assert!(matches!(nowhere.remember("rank == 1"), Err(FileError::Nowhere("XDG_STATE_HOME"))));
    assert!(nowhere.history().is_ok() && nowhere.config().is_ok(), "nothing to read is nothing wrong");
}

/// Needs root, who can make something that is somebody else's.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn give_away(path: &Path) {
    std::os::unix::fs::lchown(path, Some(65_534), Some(65_534)).unwrap();
}

/// Invariant OWN-FILES.
#[test]
fn nothing_is_written_into_the_home_of_somebody_else() {
    if !is_root() {
        return;
    }
    let (home, files) = home();
    fs::create_dir_all(home.path().join(".config/mpiprobe")).unwrap();
    fs::write(home.path().join(".config/mpiprobe/config.toml"), "[views.a]\n").unwrap();
    for path in [".config/mpiprobe/config.toml", ".config/mpiprobe", ".config", ""] {
        give_away(&home.path().join(path));
    }
    let error = files.remember("rank == 1").unwrap_err();
    assert!(
        matches!(error, FileError::File(files::FileError::OfSomebodyElse { owner: 65_534, user: 0, .. })),
        "{error}"
    );
    assert!(files.save_view("b", &SavedView::default()).is_err());
    assert!(!home.path().join(".local").exists());
    assert!(files.config().unwrap().views.contains_key("a"), "who uses sudo finds the own views");
    // What the owner of the home could not have read is not read for the owner.
    let secret = tempdir().unwrap();
    fs::write(secret.path().join("secret"), "[views.secret]\n").unwrap();
    let config = home.path().join(".config/mpiprobe/config.toml");
    fs::remove_file(&config).unwrap();
    symlink(secret.path().join("secret"), &config).unwrap();
    give_away(&config);
    assert!(matches!(files.config(), Err(FileError::File(files::FileError::NotTrusted { .. }))));
}

/// Invariant OWN-FILES.
#[test]
fn links_of_others_are_not_followed() {
    if !is_root() {
        return;
    }
    let (home, files) = home();
    let elsewhere = tempdir().unwrap();
    symlink(elsewhere.path(), home.path().join(".local")).unwrap();
    give_away(&home.path().join(".local"));
    assert!(matches!(files.remember("rank == 1"), Err(FileError::File(files::FileError::NotTrusted { .. }))));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn own_links_are_read_and_not_replaced() {
    let (home, files) = home();
    let elsewhere = tempdir().unwrap();
    let folder = home.path().join(".config/mpiprobe");
    fs::create_dir_all(&folder).unwrap();
    fs::write(elsewhere.path().join("mine"), "[views.a]\n").unwrap();
    symlink(elsewhere.path().join("mine"), folder.join("config.toml")).unwrap();
    assert!(files.config().unwrap().views.contains_key("a"));
    assert!(matches!(files.save_view("b", &SavedView::default()), Err(FileError::File(files::FileError::Link { .. }))));
}

#[test]
fn where_everybody_may_write_nothing_is_trusted() {
    let (home, files) = home();
    fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(files.remember("rank == 1"), Err(FileError::File(files::FileError::NotTrusted { .. }))));
}

#[test]
fn a_file_is_replaced_with_its_mode_and_read_within_limits() {
    let home = tempdir().unwrap();
    let directory = Directory::open(home.path(), &["a", "b"], Access::Write).unwrap().unwrap();
    directory.replace("f", "one").unwrap();
    fs::set_permissions(home.path().join("a/b/f"), Permissions::from_mode(0o640)).unwrap();
    directory.replace("f", "three").unwrap();
    assert_eq!(mode(&home.path().join("a/b/f")), 0o640);
    assert_eq!(directory.read("f", 5).unwrap().as_deref(), Some("three"));
    assert!(matches!(directory.read("f", 4), Err(files::FileError::TooLarge { limit: 4, .. })));
    assert_eq!(directory.read("g", 4).unwrap(), None);
    fs::create_dir(home.path().join("a/b/d")).unwrap();
    assert!(directory.read("d", 4).is_err());
    assert!(Directory::open(home.path(), &["a", "c"], Access::Read).unwrap().is_none());
}

#[test]
fn mistakes_are_told_with_their_place() {
    let wrong = |text: &str| Config::of_text(text).unwrap_err();
    assert_eq!(Config::of_text("# nothing\n"), Ok(Config::default()));
    assert!(Config::of_text("interval = \"2s\"\n").is_ok(), "an option's default");
    assert!(
        wrong("[views.a]\nscreen = \"rank\"\n").starts_with("line 2, column 10: \"rank\" is none of overview, ranks")
    );
    let filter = wrong("[views.a]\nfilter = \"rank == 1 and byts > 1\"\n");
    assert_eq!(filter, "line 2, column 10: line 1, column 15 of the filter: there is no field byts; is it bytes?");
    assert!(wrong("[views.a\n").starts_with("line 1, column 9: "), "{}", wrong("[views.a\n"));
}

#[test]
fn saving_leaves_everything_else_as_it_was() {
    let text = "# mine\n[views.\"a b\"] # first\nscreen = \"ranks\" # all of them\nsort = \"calls\"\n\n# the other\n[views.c]\nspan = \"start\"\n";
    let view =
        SavedView { filter: Some("rank == 1".parse().unwrap()), screen: Some(Screen::Matrix), ..SavedView::default() };
    let saved = save(text, "a b", &view).unwrap();
    assert_eq!(
        saved,
        "# mine\n[views.\"a b\"] # first\nscreen = \"matrix\" # all of them\nfilter = \"rank == 1\"\n\n# the other\n[views.c]\nspan = \"start\"\n"
    );
    let saved = save("", "new \"one\"", &view).unwrap();
    assert_eq!(Config::of_text(&saved).unwrap().views.get("new \"one\""), Some(&view));
    assert!(save("views = 1\n", "a", &view).is_err());
    assert!(
        save("views = { c = { span = \"start\" } }\n", "a", &view).is_ok_and(|text| Config::of_text(&text).is_ok())
    );
}

#[test]
fn names_can_be_seen() {
    let (_home, files) = home();
    for name in ["", "a\nb", &"x".repeat(61)] {
        assert!(matches!(files.save_view(name, &SavedView::default()), Err(FileError::Name)), "{name:?}");
    }
}
