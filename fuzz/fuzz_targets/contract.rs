//! `padmm_fuzz::contract` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    padmm_fuzz::contract(text);
});
