//! Names of sites and of runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::IdentityError;

/// The longest name; it must fit in a label of a DNS name.
const LONGEST: usize = 40;

/// The name of a site, or of a run: a part of file names and of a certificate's DNS name, so it is plain on purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SiteName(String);

impl SiteName {
    /// The name, if it is one: 1 to 40 lower-case letters, digits and inner hyphens.
    pub fn new(text: impl Into<String>) -> Result<Self, IdentityError> {
        let text = text.into();
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let ends_are_plain = [text.bytes().next(), text.bytes().last()].iter().all(|b| b.is_some_and(plain));
        if ends_are_plain && text.len() <= LONGEST && text.bytes().all(|b| plain(b) || b == b'-') {
            Ok(Self(text))
        } else {
            Err(IdentityError::Name { found: text.chars().take(LONGEST + 20).collect() })
        }
    }

    /// The name as it was given; it needs no quoting in paths or TOML.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The DNS name in the site's certificate. The domain is reserved for private use, so nobody else can own it.
    pub fn dns_name(&self) -> String {
        format!("{}.padmm.internal", self.0)
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for SiteName {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        Self::new(text)
    }
}

impl TryFrom<String> for SiteName {
    type Error = IdentityError;
    fn try_from(text: String) -> Result<Self, IdentityError> {
        Self::new(text)
    }
}

impl From<SiteName> for String {
    fn from(name: SiteName) -> Self {
        name.0
    }
}

impl PartialEq<str> for SiteName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

#[cfg(test)]
mod tests {
    use super::SiteName;

    #[test]
    fn names_are_plain() {
        for good in ["a", "7", "long-beach", "a--b", &"x".repeat(40)] {
            assert_eq!(SiteName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "a-", "A", "a b", "a.b", "ä", "a/b", "..", &"x".repeat(41)] {
            assert!(SiteName::new(bad).is_err(), "{bad}");
        }
    }
}
