//! What is said of a node service that is not there, or is none. What is said of one that answers is tried beside the service itself.

use std::{
    fs::{self, Permissions},
    io::{Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
    thread,
};

use libtest_mimic::{Failed, Trial};

use crate::run::Report;

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        Trial::test("a_service_that_is_not_there_is_told", not_there),
        Trial::test("a_socket_that_others_can_replace_is_not_believed", not_its_own),
        Trial::test("what_answers_otherwise_is_no_service", another),
    ]
}

fn of(socket: &Path) -> Result<Report, Failed> {
    Report::of(&["--service", "--socket", socket.to_str().ok_or("a path of text")?])
}

fn not_there() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("socket");
    let report = of(&socket)?;
    assert_eq!(report.verdict("service-socket")?, "failed");
    assert!(report.finding("service-socket")?.contains("is not there"));
    assert!(report.fix("service-socket")?.contains("mpiprobe service"));
    assert!(!report.has("service") && !report.has("kernel"), "nothing else is checked");
    // One that was killed leaves its socket behind.
    drop(UnixListener::bind(&socket)?);
    let report = of(&socket)?;
    assert_eq!((report.verdict("service-socket")?, report.verdict("service")?), ("ok", "failed"));
    assert!(report.finding("service")?.contains("nobody listens"), "{}", report.finding("service")?);
    Ok(())
}

fn not_its_own() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket)?;
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777))?;
    let report = of(&socket)?;
    assert_eq!(report.verdict("service-socket")?, "failed");
    let finding = report.finding("service-socket")?;
    assert!(finding.contains("is not the service's") && finding.contains("can be written by others"), "{finding}");
    assert!(!report.has("service"), "it is not asked");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    // Somebody else's, which only root can make.
    if std::os::unix::fs::chown(&socket, Some(65_533), None).is_ok() {
        let finding = of(&socket)?.finding("service-socket")?.to_owned();
        assert!(finding.contains("belongs to user 65533"), "{finding}");
    }
    Ok(())
}

fn another() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("socket");
    for (body, verdict, said) in [
        ("<html>", "failed", "no service of this version"),
        (
            "{\"schema\": \"mpiprobe.service/1\", \"version\": \"0.0.1\", \"running_s\": 1, \"you\": {\"sees_all\": true, \"observations\": 0, \
             \"table_bytes\": 0, \"refused\": 0}, \"quota\": {\"connections\": 1, \"observations\": 1, \"tables\": 1}}",
            "limited",
            "mpiprobe 0.0.1",
        ),
    ] {
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)?;
        let answering = thread::spawn(move || -> std::io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            let mut asked = [0; 16];
            stream.read_exact(&mut asked)?;
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        });
        let report = of(&socket)?;
        assert_eq!(report.verdict("service")?, verdict);
        assert!(report.finding("service")?.contains(said), "{}", report.finding("service")?);
        answering.join().map_err(|_| "the other service has failed")??;
    }
    Ok(())
}
