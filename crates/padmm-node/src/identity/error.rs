//! What can be wrong with a site's identity, or with another's.

use std::path::PathBuf;

use super::{Fingerprint, KeyError, SiteName};

/// Why a name, key, certificate, card or home is refused.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum IdentityError {
    /// The name of a site or run has letters that are not allowed.
    #[error(
        "'{found}' is not a name: use 1 to 40 lower-case letters, digits and hyphens, with no hyphen at either end"
    )]
    Name { found: String },
    /// Text that is not a fingerprint, perhaps mistyped.
    #[error("'{found}' is not a fingerprint: it has 8 groups of 5 digits")]
    Fingerprint { found: String },
    /// Text that is not a key or a signature.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key file whose text is not a key.
    #[error("the key file {} is damaged ({problem}): restore it from a backup", path.display())]
    KeyFile { path: PathBuf, problem: KeyError },
    /// A file with a secret is readable by others than its owner.
    #[error("{path} can be read by others (mode {mode:03o}): run `chmod 600 {path}`, and if somebody may have read it, replace it (a key by `padmm-site site rotate`)", path = path.display())]
    Permissions { path: PathBuf, mode: u32 },
    /// A file or folder cannot be read.
    #[error("cannot read {}: {problem}{}", path.display(), who_may(problem))]
    Read { path: PathBuf, problem: std::io::Error },
    /// A file or folder cannot be written.
    #[error("cannot write {}: {problem}{}", path.display(), who_may(problem))]
    Write { path: PathBuf, problem: std::io::Error },
    /// A home or a key is there already, and is never overwritten.
    #[error("{} exists already and is never overwritten: choose another place", path.display())]
    Exists { path: PathBuf },
    /// The folder holds no `site.toml`.
    #[error("{} is not a site's home (it has no site.toml): make one with `padmm-site site init`", path.display())]
    NoHome {
        /// The folder that is not a home.
        path: PathBuf,
    },
    /// A text file is not understood.
    #[error("{}{}: {problem}", path.display(), line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Text {
        path: PathBuf,
        /// The line, where it is known.
        line: Option<usize>,
        /// What is wrong with it, in words.
        problem: String,
    },
    /// A setting of `site.toml` or of `site init` with a value that it cannot have.
    #[error("`{key}` is '{found}', but it must be {rule}")]
    Setting { key: &'static str, found: String, rule: &'static str },
    /// A password where everybody reads it.
    #[error(
        "`proxy` has a password in it: leave it out there, as in http://user@proxy.example.org:3128, and put it into a file of its own (`proxy-password-file`) or into the environment variable PADMM_PROXY_PASSWORD"
    )]
    ProxyPassword,
    /// A setting that is needed now and was left out.
    #[error("{} has no {what}: add {example}", path.display())]
    Missing {
        /// The `site.toml` in which it is missing.
        path: PathBuf,
        what: &'static str,
        example: &'static str,
    },
    /// Files of one home that do not belong together.
    #[error("in {} the {first} does not belong to the {second}: restore both from the same backup", home.display())]
    Mismatch {
        home: PathBuf,
        /// One of the two, in words.
        first: &'static str,
        /// The other of the two, in words.
        second: &'static str,
    },
    /// A card of another version of this program.
    #[error(
        "the card of {name} has format {found}, and this program reads format {known}: use the same version of padmm at all sites"
    )]
    CardFormat {
        /// The site that the card names.
        name: String,
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
    /// A card that its owner did not sign as it is.
    #[error("the card of {name} was changed after it was signed: ask {name} for it again")]
    CardSignature {
        /// The site that the card names.
        name: SiteName,
    },
    /// The text holds no certificate that can be read.
    #[error(
        "the certificate of {name} cannot be read ({problem}): it must be PEM text, the site's own certificate first"
    )]
    NotACertificate {
        /// The site that presents the certificate.
        name: String,
        /// What is wrong with it, in words.
        problem: String,
    },
    /// The certificate was issued for another key.
    #[error("the certificate of {name} is for another key than {name}'s identity key")]
    CertificateKey {
        /// The site that presents the certificate.
        name: SiteName,
    },
    /// The certificate was issued for another name.
    #[error("the certificate of {name} is for {}, but it must be for '{expected}'", if found.is_empty() { "no DNS name".to_owned() } else { format!("'{}'", found.join("', '")) })]
    CertificateName {
        /// The site that presents the certificate.
        name: SiteName,
        expected: String,
        /// The names that the certificate is for.
        found: Vec<String>,
    },
    /// The certificate's last day has passed.
    #[error(
        "the certificate of {name} expired on {on}: {name} has to renew it (`padmm-site site rotate`, or `padmm-site site certify` with an authority) and to send its new card"
    )]
    Expired {
        /// The site that presents the certificate.
        name: SiteName,
        /// The last day on which it is valid, year-month-day.
        on: String,
    },
    /// The certificate's first day is still to come, or this machine's clock is wrong.
    #[error("the certificate of {name} is valid from {from} only: is this machine's clock right?")]
    NotYetValid {
        /// The site that presents the certificate.
        name: SiteName,
        /// The first day on which it is valid, year-month-day.
        from: String,
    },
    /// A certificate that the contract's authority did not issue.
    #[error(
        "the certificate of {name} was not issued by the authority that the plan names ('{authority}'): {name} needs `padmm-site site csr` and `padmm-site site certify`"
    )]
    OtherAuthority {
        /// The site that presents the certificate.
        name: SiteName,
        /// The authority, by its certificate's subject.
        authority: String,
    },
    /// A certificate that its chain does not support for some other reason.
    #[error("the certificate of {name} does not hold up against the authority '{authority}': {problem}")]
    Chain {
        /// The site that presents the certificate.
        name: SiteName,
        /// The authority, by its certificate's subject.
        authority: String,
        problem: String,
    },
    /// Something that is given as an authority and is none.
    #[error("this is not the certificate of an authority: {problem}")]
    NotAnAuthority {
        /// What is wrong with it, in words.
        problem: String,
    },
    /// The authority's own certificate is past its end.
    #[error("the certificate of the authority '{authority}' expired on {on}: the plan needs a new one")]
    AuthorityExpired {
        /// The authority, by its certificate's subject.
        authority: String,
        /// The last day on which it is valid, year-month-day.
        on: String,
    },
    /// The library that writes certificates refuses.
    #[error("the certificate cannot be made: {problem}")]
    MakeCertificate { problem: String },
    /// An older card than the one that is known.
    #[error(
        "the card of {name} has serial {found}, and serial {known} is known already: ask {name} for its newest card"
    )]
    OlderCard {
        /// The site that the card names.
        name: SiteName,
        found: u32,
        known: u32,
    },
    /// Two different cards of a site have the same serial.
    #[error(
        "the card of {name} has the same serial {serial} as the known one and says something else: ask {name} for its newest card"
    )]
    SameSerial {
        /// The site that the card names.
        name: SiteName,
        /// The serial number that both cards have.
        serial: u32,
    },
    /// Another identity under a known name.
    #[error(
        "{name} is known by the fingerprint {known}, and this card has {found}: call {name}, and if it says that it has a new identity, use --replace"
    )]
    OtherIdentity {
        /// The site that both claim to be.
        name: SiteName,
        /// The fingerprint of the card that was imported before.
        known: Fingerprint,
        /// The fingerprint of the new card.
        found: Fingerprint,
    },
    /// A site whose card was never imported.
    #[error("there is no card of {name}: ask for it, and import it with `padmm-site site add-card FILE`")]
    UnknownSite {
        /// The site whose card is missing.
        name: SiteName,
    },
    /// A site was given its own card to import.
    #[error("this is a card with this site's own name, {name}: import the cards of others only")]
    OwnName { name: SiteName },
}

/// What to do about a right that is missing; nothing is said about other problems.
fn who_may(problem: &std::io::Error) -> &'static str {
    match problem.kind() {
        std::io::ErrorKind::PermissionDenied => {
            ". Run the command as the user that the site's home belongs to"
        }
        _ => "",
    }
}
