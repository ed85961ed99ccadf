//! The command `padmm-site` as it is shipped, without test hooks.

use std::process::ExitCode;

fn main() -> ExitCode {
    padmm_site::main()
}
