//! What real sites do is done by `padmm-site`, so that simulations are built and run without a network engine and a database. This
//! command lists its subcommands and becomes that program when one of them is asked for, as git and cargo do.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

use padmm_commands::about;

/// The subcommands that are handed over, and what `padmm --help` says about each.
const SUBCOMMANDS: [(&str, &str); 5] = [
    ("site", about::SITE),
    ("plan", about::PLAN),
    ("ledger", about::LEDGER),
    ("doctor", about::DOCTOR),
    ("audit", about::AUDIT),
];

/// The command with the subcommands that are handed over, so that its help and its suggestions know of them.
pub(crate) fn list(command: clap::Command) -> clap::Command {
    SUBCOMMANDS
        .iter()
        .fold(command, |all, &(name, about)| all.subcommand(clap::Command::new(name).about(about)))
}

/// Whether these arguments, without the program's name, are for `padmm-site`: a subcommand of it, or help about one.
pub(crate) fn is_asked_for(args: &[OsString]) -> bool {
    let is_handed_over = |arg: &OsString| SUBCOMMANDS.iter().any(|(name, _)| arg == name);
    match args {
        [help, about, ..] if help == "help" => is_handed_over(about),
        [first, ..] => is_handed_over(first),
        [] => false,
    }
}

/// Becomes `padmm-site` with these arguments, so that signals and the exit code are its own. Returns only if that is not possible; where
/// a program cannot become another one, it waits and returns the exit code.
pub(crate) fn run(args: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut command = padmm_site();
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

/// The program beside this one, or else the one on the path.
pub(crate) fn padmm_site() -> Command {
    let name = format!("padmm-site{}", std::env::consts::EXE_SUFFIX);
    let beside =
        std::env::current_exe().ok().map(|own| own.with_file_name(&name)).filter(|path| path.is_file());
    Command::new(beside.as_deref().map_or(OsStr::new(&name), |path| path.as_os_str()))
}

fn not_started(error: &std::io::Error, command: &Command) -> anyhow::Error {
    let program = command.get_program().display();
    if error.kind() != ErrorKind::NotFound {
        return anyhow::anyhow!("{program} cannot be started: {error}");
    }
    let all = SUBCOMMANDS.map(|(name, _)| name).join(", ");
    anyhow::anyhow!(
        "the program padmm-site is neither beside padmm nor on the path, and {all} and demo are its subcommands: build it with `cargo \
         build --release --bin padmm-site`, or install it into the folder of padmm"
    )
}
