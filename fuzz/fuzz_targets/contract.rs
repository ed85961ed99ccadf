//! Any text as a `plan.toml`: an error that names the file, or a contract that is read back as itself.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use padmm_node::contract::Contract;

fuzz_target!(|text: &str| {
    let Ok(contract) = Contract::from_toml(text, Path::new("plan.toml")) else { return };
    let again = Contract::from_toml(&contract.to_toml(), Path::new("plan.toml")).expect("it was written here");
    assert_eq!(again.hash(), contract.hash());
});
