//! Cards: what a site tells others about itself, signed by its identity.

use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    Certificate, Expiry, Fingerprint, IdentityError, PublicKey, SecretKey, Signature, SignaturePurpose,
    SiteName,
};

/// The format of cards that this program writes and reads.
pub const CARD_FORMAT: u32 = 1;

/// A card as a file holds it, before it is known to be genuine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardDraft {
    /// Always [`CARD_FORMAT`] once it is checked.
    pub format: u32,
    /// The site that the card names.
    pub name: SiteName,
    /// Counts up with every new card.
    pub serial: u32,
    /// Signs cards, acceptances and releases.
    pub identity: PublicKey,
    /// The key that connections to the site are pinned to.
    pub transport: PublicKey,
    /// Where the site listens, as `host:port`.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// URL of a relay that forwards what cannot be sent directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<String>,
    /// PEM text: the site's certificate, then intermediate ones.
    pub certificate: String,
    /// By `identity`, over everything else.
    pub signature: Signature,
}

/// A card whose signature, certificate and addresses have been checked. Deserialising goes through the same check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CardDraft", into = "CardDraft")]
pub struct Card {
    draft: CardDraft,
    certificate: Certificate,
}

impl CardDraft {
    /// Everything but the signature, each field with its length, so that no two cards have the same encoding.
    fn encoding(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |field: &[u8]| {
            bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
            bytes.extend_from_slice(field);
        };
        put(&self.format.to_be_bytes());
        put(self.name.as_str().as_bytes());
        put(&self.serial.to_be_bytes());
        put(&self.identity.to_bytes());
        put(&self.transport.to_bytes());
        put(&(self.addresses.len() as u64).to_be_bytes());
        self.addresses.iter().for_each(|address| put(address.as_bytes()));
        put(&[u8::from(self.relay.is_some())]);
        put(self.relay.as_deref().unwrap_or_default().as_bytes());
        put(self.certificate.as_bytes());
        bytes
    }

    /// Checks everything but dates, for which a clock is needed.
    pub fn check(self) -> Result<Card, IdentityError> {
        if self.format != CARD_FORMAT {
            return Err(IdentityError::CardFormat {
                name: self.name.to_string(),
                found: self.format,
                known: CARD_FORMAT,
            });
        }
        if !self.identity.verifies(SignaturePurpose::Card, &self.encoding(), &self.signature) {
            return Err(IdentityError::CardSignature { name: self.name });
        }
        self.addresses.iter().try_for_each(|address| check_address(address))?;
        self.relay.iter().try_for_each(|url| check_relay(url))?;
        let certificate = Certificate::from_pem(self.name.as_str(), &self.certificate)?;
        certificate.check_owner(&self.name, &self.identity)?;
        Ok(Card { draft: self, certificate })
    }
}

impl Card {
    /// A new card, signed by `identity`.
    pub fn sign(
        identity: &SecretKey,
        transport: PublicKey,
        name: &SiteName,
        serial: u32,
        addresses: Vec<String>,
        relay: Option<String>,
        certificate: &Certificate,
    ) -> Result<Self, IdentityError> {
        let mut draft = CardDraft {
            format: CARD_FORMAT,
            name: name.clone(),
            serial,
            identity: identity.public(),
            transport,
            addresses,
            relay,
            certificate: certificate.pem().to_owned(),
            signature: Signature([0; 64]),
        };
        draft.signature = identity.sign(SignaturePurpose::Card, &draft.encoding());
        draft.check()
    }

    /// Reads and checks a card's file; dates are left to [`Card::check`].
    pub fn read(path: &Path) -> Result<Self, IdentityError> {
        let text = std::fs::read_to_string(path)
            .map_err(|problem| IdentityError::Read { path: path.to_owned(), problem })?;
        let draft: CardDraft = toml::from_str(&text).map_err(|error| not_understood(path, &text, &error))?;
        draft.check()
    }

    /// The text of its file, with a comment about the fingerprint.
    pub fn to_toml(&self) -> String {
        let comment = format!(
            "# The card of {}: everything here is public. Compare the fingerprint with its owner over another channel:\n#   {}\n",
            self.name(),
            self.fingerprint()
        );
        comment + &toml::to_string(&self.draft).expect("a card is plain text and numbers")
    }

    /// Whether the certificate is within its dates; the rest was checked when the card was read.
    pub fn check(&self, now: SystemTime) -> Result<Expiry, IdentityError> {
        self.certificate.check_dates(self.name(), now)
    }

    /// The site that the card is of.
    pub fn name(&self) -> &SiteName {
        &self.draft.name
    }

    /// Counts up with every new card.
    pub fn serial(&self) -> u32 {
        self.draft.serial
    }

    /// Signs cards, acceptances and releases.
    pub fn identity(&self) -> &PublicKey {
        &self.draft.identity
    }

    /// The key that connections to the site are pinned to.
    pub fn transport(&self) -> &PublicKey {
        &self.draft.transport
    }

    /// Where the site listens, as `host:port`.
    pub fn addresses(&self) -> &[String] {
        &self.draft.addresses
    }

    /// URL of the relay that reaches it, if it has one.
    pub fn relay(&self) -> Option<&str> {
        self.draft.relay.as_deref()
    }

    /// The site's certificate, self-signed or from an authority.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The fingerprint of the identity key.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.draft.identity)
    }
}

impl TryFrom<CardDraft> for Card {
    type Error = IdentityError;
    fn try_from(draft: CardDraft) -> Result<Self, IdentityError> {
        draft.check()
    }
}

impl From<Card> for CardDraft {
    fn from(card: Card) -> Self {
        card.draft
    }
}

/// `host:port`, with an IPv6 address in brackets.
pub(super) fn check_address(address: &str) -> Result<(), IdentityError> {
    let wrong = || IdentityError::Setting {
        key: "address",
        found: address.to_owned(),
        rule: "a host and a port, like site.example.org:7447 or [2001:db8::1]:7447",
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    let is_host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(inside) => inside.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        }
    };
    if is_port && is_host { Ok(()) } else { Err(wrong()) }
}

/// The address of a web server; without encryption too, because what is relayed is encrypted already.
pub(super) fn check_relay(url: &str) -> Result<(), IdentityError> {
    // The engine takes hosts for granted that a request can name, and a relay's password would stand on a card.
    let is_name = |host: &str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b));
    let is_usable = |parsed: &Url| {
        matches!(parsed.scheme(), "https" | "http")
            && parsed.host_str().is_some_and(is_name)
            && parsed.username().is_empty()
            && parsed.password().is_none()
    };
    if url.bytes().all(|b| b.is_ascii_graphic()) && Url::parse(url).is_ok_and(|parsed| is_usable(&parsed)) {
        return Ok(());
    }
    let rule = "a URL without user and password, like https://relay.example.org";
    let without_user = url.rsplit_once('@').map_or(url, |(_, host)| host);
    Err(IdentityError::Setting { key: "relay", found: without_user.to_owned(), rule })
}

/// A TOML error with file and line.
pub(super) fn not_understood(path: &Path, text: &str, error: &toml::de::Error) -> IdentityError {
    let line = |span: std::ops::Range<usize>| 1 + text[..span.start.min(text.len())].matches('\n').count();
    IdentityError::Text {
        path: path.to_owned(),
        line: error.span().map(line),
        problem: error.message().to_owned(),
    }
}
