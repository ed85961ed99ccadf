//! A key's fingerprint: short enough to be read out over the telephone, long enough that nobody can make another key with it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{IdentityError, PublicKey};

const GROUPS: usize = 8;
const GROUP: u32 = 100_000;

/// The fingerprint of an identity key: 8 groups of 5 decimal digits (about 132 bits).
///
/// Group `i` is the `i`-th four bytes of a SHA-256 digest, read as a number, modulo 100,000. It covers the identity key
/// alone, so a new transport key, address or certificate leaves it as it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u32; GROUPS]);

impl Fingerprint {
    /// A hash of `key` that is short enough to be read out.
    pub fn of(key: &PublicKey) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"padmm fingerprint 1\0");
        hash.update(key.to_bytes());
        let digest = hash.finalize();
        let mut groups = [0; GROUPS];
        for (group, bytes) in groups.iter_mut().zip(digest.chunks_exact(4)) {
            *group = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) % GROUP;
        }
        Self(groups)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.0.iter().enumerate() {
            write!(f, "{}{group:05}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Fingerprint {
    type Err = IdentityError;

    /// Groups may be set apart by spaces or hyphens, or not at all.
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let wrong = || IdentityError::Fingerprint { found: text.chars().take(60).collect() };
        let digits: Vec<u32> = (text.chars().filter(|c| !c.is_whitespace() && *c != '-'))
            .map(|c| c.to_digit(10).ok_or_else(wrong))
            .collect::<Result<_, _>>()?;
        if digits.len() != 5 * GROUPS {
            return Err(wrong());
        }
        let mut groups = [0; GROUPS];
        for (group, digits) in groups.iter_mut().zip(digits.chunks_exact(5)) {
            *group = digits.iter().fold(0, |number, digit| 10 * number + digit);
        }
        Ok(Self(groups))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = IdentityError;
    fn try_from(text: String) -> Result<Self, IdentityError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}
