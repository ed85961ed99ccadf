//! What real sites do is done by `padmm-site`, and what a relay does by `padmm-relay`, so that simulations are built and run without a network
//! engine and a database. This command lists their subcommands and becomes the program that is meant when one of them is asked for, as git
//! and cargo do.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

use padmm_commands::about;

const SITE: &str = "padmm-site";
const RELAY_PROGRAM: &str = "padmm-relay";

/// Handed over to `padmm-relay`.
const RELAY: (&str, &str) = ("relay", about::RELAY);
/// The subcommands that are handed over to `padmm-site`, and what `padmm --help` says about each.
const SUBCOMMANDS: [(&str, &str); 5] = [
    ("site", about::SITE),
    ("plan", about::PLAN),
    ("ledger", about::LEDGER),
    ("doctor", about::DOCTOR),
    ("audit", about::AUDIT),
];

/// The command with the subcommands that are handed over, so that its help and its suggestions know of them.
pub(crate) fn list(command: clap::Command) -> clap::Command {
    (SUBCOMMANDS.iter().chain([&RELAY]))
        .fold(command, |all, &(name, about)| all.subcommand(clap::Command::new(name).about(about)))
}

/// The program that these arguments, without the name of this one, are for, and what is left for it to read: a subcommand of another
/// program, or help about one.
fn meant(args: &[OsString]) -> Option<(&'static str, Vec<OsString>)> {
    let is_site = |arg: &OsString| SUBCOMMANDS.iter().any(|(name, _)| arg == name);
    match args {
        [help, about, ..] if help == "help" && is_site(about) => Some((SITE, args.to_vec())),
        [help, about, ..] if help == "help" && about == RELAY.0 => {
            Some((RELAY_PROGRAM, vec!["--help".into()]))
        }
        [first, ..] if is_site(first) => Some((SITE, args.to_vec())),
        // It is a program of its own with nothing but this to do.
        [first, rest @ ..] if first == RELAY.0 => Some((RELAY_PROGRAM, rest.to_vec())),
        _ => None,
    }
}

/// Whether these arguments are for another program.
pub(crate) fn is_asked_for(args: &[OsString]) -> bool {
    meant(args).is_some()
}

/// Becomes the program that is meant, so that signals and the exit code are its own. Returns only if that is not possible; where a
/// program cannot become another one, it waits and returns the exit code.
pub(crate) fn run(args: &[OsString]) -> anyhow::Result<ExitCode> {
    let (name, args) = meant(args).unwrap_or((SITE, args.to_vec()));
    let mut command = program(name);
    command.args(args);
    #[cfg(unix)]
    {
        let error = std::os::unix::process::CommandExt::exec(&mut command);
        Err(not_started(&error, &command))
    }
    #[cfg(not(unix))]
    wait(&mut command)
}

/// Runs a command of `padmm-site` to its end and returns its exit code.
pub(crate) fn wait(command: &mut Command) -> anyhow::Result<ExitCode> {
    let status = command.status().map_err(|error| not_started(&error, command))?;
    // Without a code it was killed; that is no success either.
    let code = status.code().map_or(u8::MAX, |code| u8::try_from(code).unwrap_or(u8::MAX));
    Ok(ExitCode::from(code))
}

/// `padmm-site`: beside this program, or else on the path.
pub(crate) fn padmm_site() -> Command {
    program(SITE)
}

fn program(name: &str) -> Command {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let beside =
        std::env::current_exe().ok().map(|own| own.with_file_name(&name)).filter(|path| path.is_file());
    Command::new(beside.as_deref().map_or(OsStr::new(&name), |path| path.as_os_str()))
}

fn not_started(error: &std::io::Error, command: &Command) -> anyhow::Error {
    let program = command.get_program().display();
    if error.kind() != ErrorKind::NotFound {
        return anyhow::anyhow!("{program} cannot be started: {error}");
    }
    let is_relay = command.get_program().to_string_lossy().starts_with(RELAY_PROGRAM);
    let (name, does) = match is_relay {
        true => (RELAY_PROGRAM, "it is what `relay` starts".to_owned()),
        false => {
            (SITE, format!("{} and demo are its subcommands", SUBCOMMANDS.map(|(name, _)| name).join(", ")))
        }
    };
    anyhow::anyhow!(
        "the program {name} is neither beside padmm nor on the path, and {does}: build it with `cargo build --release --bin {name}`, or \
         install it into the folder of padmm"
    )
}
