//! Any text as a card: an error, or a card that is read back as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use padmm_node::identity::CardDraft;

fuzz_target!(|text: &str| {
    let Ok(draft) = toml::from_str::<CardDraft>(text) else { return };
    let Ok(card) = draft.check() else { return };
    let again: CardDraft = toml::from_str(&card.to_toml()).expect("it was written here");
    assert_eq!(again.check().expect("it was checked here"), card);
});
