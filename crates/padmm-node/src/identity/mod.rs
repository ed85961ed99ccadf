//! Who a site is, and how others know.
//!
//! A site has two keys. The *identity* signs cards, acceptances and every release; people compare its [`Fingerprint`] once,
//! and contracts name it. The *transport* key is what connections are made with; it can be changed without a new contract.
//! A [`Card`] holds both, signed by the identity; a [`Home`] is the folder in which all of it is kept.

mod card;
mod certificate;
mod config;
mod error;
mod fingerprint;
mod home;
mod keys;
mod name;
mod network;
mod private_file;
mod store;
mod verified;

pub use card::{CARD_FORMAT, Card, CardDraft};
pub use certificate::{Authority, Certificate, Expiry, WARNING_DAYS};
pub use config::{Cap, LogFormat, SiteConfig};
pub use error::IdentityError;
pub use fingerprint::Fingerprint;
pub use home::{Home, InitRequest};
pub use keys::{KeyError, PublicKey, SecretKey, Signature, SignaturePurpose, from_hex, to_hex};
pub use name::SiteName;
pub use network::{NetworkConfig, PROXY_PASSWORD, WayOut};
pub use store::{CardStore, Imported, cards_in};
