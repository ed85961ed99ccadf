//! The command `padmm`.

use std::process::ExitCode;

fn main() -> ExitCode {
    padmm_cli::main()
}
