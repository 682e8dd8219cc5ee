//! Manual pages and completions, from the definition of the command line.

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use super::Arguments;

/// Everything that can be typed, with each command's own name: `mpiprobe-hang`.
fn definition() -> Command {
    let mut command = Arguments::command();
    command.build();
    command
}

/// A script that the shell reads.
pub(super) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "mpiprobe", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Of mpiprobe or a command of it, such as `hang` or `mpiprobe-hang`, in the language of man(7); `None`: there is no such command.
pub(super) fn page(command: Option<&str>) -> Option<String> {
    let definition = definition();
    let wanted = match command {
        Some(name) => definition.find_subcommand(name.trim_start_matches("mpiprobe-"))?,
        None => &definition,
    };
    let mut page = Vec::new();
    let manual = Man::new(wanted.clone()).manual("User Commands");
    // Writing to memory does not fail.
    let _ = manual.source(concat!("mpiprobe ", env!("CARGO_PKG_VERSION"))).render(&mut page);
    Some(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_command_has_a_page_of_its_name() {
        let definition = definition();
        for command in definition.get_subcommands().filter(|command| command.get_name() != "help") {
            let name = command.get_name();
            let page = page(Some(name)).unwrap();
            assert_eq!(super::page(Some(&format!("mpiprobe-{name}"))).as_ref(), Some(&page));
            assert!(page.contains(&format!(".TH mpiprobe-{name} 1")), "{page:.300}");
            for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                let written = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(page.contains(&written), "mpiprobe-{name}: {written}");
            }
        }
        assert!(page(None).unwrap().contains(".TH mpiprobe 1"));
        assert_eq!(page(Some("hangs")), None);
    }

    #[test]
    fn every_shell_completes_every_command() {
        let definition = definition();
        for shell in Shell::value_variants() {
            let script = completions(*shell);
            for command in definition.get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
