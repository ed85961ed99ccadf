//! The cards of others, one file each.

use std::path::{Path, PathBuf};

use padmm_data::write_atomically;

use super::{Card, Fingerprint, IdentityError, SiteName};

/// The cards of others that a site keeps in a folder, one file each.
#[derive(Clone, Debug)]
pub struct CardStore {
    folder: PathBuf,
    owner: SiteName,
}

/// How an imported card stands to what was known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// A site that was not known before.
    New,
    /// The very card was known already.
    Unchanged,
    /// A newer card of the same identity.
    Updated {
        /// Serial of the card that it replaced.
        from: u32,
    },
    /// Another identity under the same name, because it was asked for.
    Replaced {
        /// Fingerprint of the identity that is gone.
        known: Fingerprint,
    },
}

impl CardStore {
    /// The store in `folder`, kept by the site `owner`.
    pub fn new(folder: PathBuf, owner: SiteName) -> Self {
        Self { folder, owner }
    }

    fn path(&self, name: &SiteName) -> PathBuf {
        self.folder.join(format!("{name}.toml"))
    }

    /// The card of `name`; an error if it is not known.
    pub fn load(&self, name: &SiteName) -> Result<Card, IdentityError> {
        self.find(name)?.ok_or_else(|| IdentityError::UnknownSite { name: name.clone() })
    }

    /// The card of `name`, if it is known.
    pub fn find(&self, name: &SiteName) -> Result<Option<Card>, IdentityError> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        let card = Card::read(&path)?;
        if card.name() == name {
            return Ok(Some(card));
        }
        let problem =
            format!("this is the card of {}: import it again with `padmm-site site add-card`", card.name());
        Err(IdentityError::Text { path, line: None, problem })
    }

    /// All cards, in the order of their names.
    pub fn all(&self) -> Result<Vec<Card>, IdentityError> {
        cards_in(&self.folder)
    }

    /// Takes in a card: a newer one of a known identity replaces the older; another identity under a known name only if
    /// `replace`, which a person may ask for after comparing fingerprints.
    pub fn import(&self, card: &Card, replace: bool) -> Result<Imported, IdentityError> {
        let outcome = self.judge(card, replace)?;
        if outcome != Imported::Unchanged {
            let path = self.path(card.name());
            write_atomically(&path, true, card.to_toml().as_bytes())
                .map_err(|error| IdentityError::Text { path, line: None, problem: error.to_string() })?;
        }
        Ok(outcome)
    }

    /// What importing a card would do.
    pub fn judge(&self, card: &Card, replace: bool) -> Result<Imported, IdentityError> {
        let name = card.name();
        if *name == self.owner {
            return Err(IdentityError::OwnName { name: name.clone() });
        }
        let Some(known) = self.find(name)? else { return Ok(Imported::New) };
        if known == *card {
            return Ok(Imported::Unchanged);
        }
        if known.identity() != card.identity() {
            let (known, found) = (known.fingerprint(), card.fingerprint());
            return if replace {
                Ok(Imported::Replaced { known })
            } else {
                Err(IdentityError::OtherIdentity { name: name.clone(), known, found })
            };
        }
        let (known, found) = (known.serial(), card.serial());
        match found.cmp(&known) {
            std::cmp::Ordering::Greater => Ok(Imported::Updated { from: known }),
            std::cmp::Ordering::Equal => Err(IdentityError::SameSerial { name: name.clone(), serial: found }),
            std::cmp::Ordering::Less => Err(IdentityError::OlderCard { name: name.clone(), found, known }),
        }
    }
}

/// The cards in the files `*.toml` of a folder, by name. Other TOML files, such as a plan, are ignored.
pub fn cards_in(folder: &Path) -> Result<Vec<Card>, IdentityError> {
    let wrong = |problem| IdentityError::Read { path: folder.to_owned(), problem };
    let mut cards = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.extension().is_some_and(|e| e == "toml") && looks_like_card(&path) {
            cards.push(Card::read(&path)?);
        }
    }
    cards.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(cards)
}

/// Whether a file has the two keys that make a card; one that cannot be read is left to the reader's own message.
fn looks_like_card(path: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else { return true };
    let Ok(table) = text.parse::<toml::Table>() else { return true };
    table.contains_key("identity") || table.contains_key("signature")
}
