//! The command `padmm-site`.

use std::process::ExitCode;

fn main() -> ExitCode {
    padmm_site::main()
}
