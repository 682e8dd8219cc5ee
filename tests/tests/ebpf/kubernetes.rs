//! The manifest for Kubernetes, as far as it can be tried without: it is read, and the node service started as it says.
#![expect(clippy::indexing_slicing, reason = "a manifest, where what is missing is null")]

use std::{fs, process::Command};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Mpi, Profiler, Requirement, bed::sources, openmetrics::Exposition, profiler::binary, requirement,
    second_user::nobody_else,
};
use serde_json::Value;

use crate::{
    monitoring::{OPENMETRICS, read},
    service::{finish, observed_job, wait_until},
};

/// Reads YAML, and says it as JSON.
const TO_JSON: &str = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)";
/// The root of a container cannot be written to; its settings are where they are mounted. What follows is executed.
const CONTAINER: &str = r#"set -eu
mount -t tmpfs -o mode=755 none /run
mkdir /run/etc /run/work "$1"
mount -t overlay -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work overlay /etc
mkdir -p "$2"
cp "$3" "$2/service.toml"
chmod 644 "$2/service.toml"
mount -o remount,bind,ro /
shift 3
exec "$@""#;

pub(crate) fn tests() -> Vec<Trial> {
    let mpi = Mpi::Mpich;
    let needs = [
        Requirement::Bpf,
        Requirement::Root,
        Requirement::Mpi(mpi),
        Requirement::File("/usr/lib/python3/dist-packages/yaml"),
        Requirement::Command("unshare"),
        Requirement::Command("setpriv"),
    ];
    vec![requirement::trial(
        format!("{}::the_service_as_its_manifest_for_kubernetes_says", mpi.id()),
        &needs,
        move || as_written(mpi),
    )]
}

fn manifest() -> Result<Vec<Value>, Failed> {
    let file = fs::File::open(sources().join("docs/kubernetes/daemonset.yaml"))?;
    let output = Command::new("/usr/bin/python3").args(["-c", TO_JSON]).stdin(file).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value, Failed> {
    let found = list.as_array().into_iter().flatten().find(|one| one["name"] == name);
    Ok(found.ok_or_else(|| format!("no {name} in {list}"))?)
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn as_written(mpi: Mpi) -> Result<(), Failed> {
    let documents = manifest()?;
    let [settings, set] = documents.as_slice() else { return Err(format!("{documents:?}").into()) };
    assert_eq!((&settings["kind"], &set["kind"]), (&"ConfigMap".into(), &"DaemonSet".into()));
    assert_eq!(set["spec"]["selector"]["matchLabels"], set["spec"]["template"]["metadata"]["labels"]);
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["hostPID"], true, "else it sees nobody");
    let container = &pod["containers"][0];
    let security = &container["securityContext"];
    assert_eq!((&security["readOnlyRootFilesystem"], &security["runAsUser"]), (&true.into(), &0.into()));
    assert_eq!(words(&security["capabilities"]["drop"]), ["ALL"]);

    // What is mounted has a volume, and the settings are from the one map.
    let mounts = &container["volumeMounts"];
    for mount in mounts.as_array().ok_or("no mounts")? {
        named(&pod["volumes"], mount["name"].as_str().unwrap_or_default())?;
    }
    assert_eq!(named(&pod["volumes"], "settings")?["configMap"]["name"], settings["metadata"]["name"]);
    let at = |name: &str| Ok::<_, Failed>(named(mounts, name)?["mountPath"].as_str().ok_or("no path")?);
    let (etc, run) = (at("settings")?, at("socket")?);
    assert_eq!(named(&pod["volumes"], "socket")?["hostPath"]["path"], run, "clients on the node have the same path");
    let text = settings["data"]["service.toml"].as_str().ok_or("no settings")?;
    assert!(text.contains(&format!("socket = \"{run}/mpiprobe.sock\"")), "{text}");

    // Another port, as somebody may have that one, and no other jobs of this machine.
    let port = container["ports"][0]["containerPort"].as_u64().ok_or("no port")?;
    let address = format!("0.0.0.0:{port}");
    assert!(text.contains(&address), "{text}");
    let alice = nobody_else();
    let text = text.replace(&address, "127.0.0.1:0");
    let text =
        text.replace("[jobs]", &format!("[jobs]\nusers = [\"{alice}\"]\nlook-every = \"100ms\"\ninterval = \"100ms\""));
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), text)?;

    let capabilities = words(&security["capabilities"]["add"]);
    let kept: Vec<String> = capabilities.iter().map(|name| format!(",+{}", name.to_lowercase())).collect();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", CONTAINER, "sh", run, etc]).arg(file.path());
    command.args(["setpriv", "--no-new-privs", "--bounding-set", &format!("-all{}", kept.concat())]);
    let typed = [words(&container["command"]), words(&container["args"])].concat();
    let (first, rest) = typed.split_first().ok_or("no command")?;
    assert_eq!(*first, "/usr/bin/mpiprobe");
    command.arg(binary()?).args(rest);
    let mut service = Profiler::spawn(command)?;
    let said = service.wait_for("metrics are at http://")?;
    let address = said.split("http://").nth(1).and_then(|rest| rest.split('/').next()).ok_or("no address")?.to_owned();
    service.wait_for("the service is ready")?;

    let mut job = observed_job(mpi, alice, 2)?;
    wait_until(|| {
        let read = Exposition::parse(&read(&address, OPENMETRICS)?)?;
        Ok(read.value("mpiprobe_job_ranks", &[]) == Some(2.0))
    })?;
    finish(&mut job)?;
    Ok(())
}
