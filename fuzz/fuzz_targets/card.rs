//! `padmm_fuzz::card` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    padmm_fuzz::card(text);
});
