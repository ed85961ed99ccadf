//! See the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    padmm_relay::main()
}
