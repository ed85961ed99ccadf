//! X.509 certificates: what binds a name and dates to an identity key, for those who ask for such a thing.
//!
//! Without an authority a site signs its own certificate, and trust rests on the fingerprint that people compared. A
//! consortium with an authority of its own names it in the contract; then every certificate must lead to it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use padmm_core::printable::printable;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyUsagePurpose};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{IdentityError, PublicKey, SecretKey, SiteName};

/// Days before the end from which a person is warned.
pub const WARNING_DAYS: u64 = 30;
const DAY: u64 = 86_400;
/// Clocks of hospitals differ, by a time zone at worst; a new certificate is valid from a day before it was made.
const BACKDATE: u64 = DAY;

/// How long a certificate is still good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It is valid for longer than [`WARNING_DAYS`].
    Fine,
    /// It is still valid, but people should be warned.
    Soon {
        /// Whole days until it ends.
        days: u64,
    },
    /// Its last day has passed.
    Expired {
        /// The last day on which it was valid, year-month-day.
        on: String,
    },
}

/// A site's certificate, with the intermediate ones after it where an authority issued it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pem: String,
    chain: Vec<CertificateDer<'static>>,
    facts: Facts,
}

/// What this program reads in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    subject: String,
    /// Whether it names itself as its issuer.
    is_own: bool,
    dns_names: Vec<String>,
    /// The Ed25519 key, if it is one.
    key: Option<[u8; 32]>,
    from: u64,
    until: u64,
}

impl Certificate {
    /// Reads PEM text; `owner` is for messages.
    pub fn from_pem(owner: &str, pem: &str) -> Result<Self, IdentityError> {
        let wrong = |problem: String| IdentityError::NotACertificate { name: owner.to_owned(), problem };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .map(|c| c.map(CertificateDer::into_owned).map_err(|e| wrong(e.to_string())))
            .collect::<Result<_, _>>()?;
        let first = chain.first().ok_or_else(|| wrong("there is none in the text".to_owned()))?;
        let facts = Facts::read(first).map_err(wrong)?;
        Ok(Self { pem: pem.to_owned(), chain, facts })
    }

    /// A certificate for `name` that its key signs itself.
    pub fn self_signed(
        name: &SiteName,
        key: &SecretKey,
        now: SystemTime,
        valid_days: u32,
    ) -> Result<Self, IdentityError> {
        let mut params = params(name)?;
        let start = seconds(now);
        params.not_before = date(start.saturating_sub(BACKDATE))?;
        params.not_after = date(start + u64::from(valid_days) * DAY)?;
        let certificate = params.self_signed(&Signer::of(key)).map_err(cannot)?;
        Self::from_pem(name.as_str(), &certificate.pem())
    }

    /// A request to an authority, signed by `key`, as PEM text.
    pub fn request(name: &SiteName, key: &SecretKey) -> Result<String, IdentityError> {
        params(name)?.serialize_request(&Signer::of(key)).and_then(|request| request.pem()).map_err(cannot)
    }

    /// The text of its PEM file.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Whether no authority issued it, so that its site can renew it alone.
    pub fn is_self_signed(&self) -> bool {
        self.facts.is_own
    }

    /// The last day on which it is valid, year-month-day.
    pub fn last_day(&self) -> String {
        day(self.facts.until)
    }

    /// Whether the certificate is for this name and key.
    pub fn check_owner(&self, name: &SiteName, key: &PublicKey) -> Result<(), IdentityError> {
        if self.facts.key != Some(key.to_bytes()) {
            return Err(IdentityError::CertificateKey { name: name.clone() });
        }
        let expected = name.dns_name();
        if !self.facts.dns_names.iter().any(|n| n.eq_ignore_ascii_case(&expected)) {
            let found = self.facts.dns_names.clone();
            return Err(IdentityError::CertificateName { name: name.clone(), expected, found });
        }
        Ok(())
    }

    /// How long it is still good for.
    pub fn expiry(&self, now: SystemTime) -> Expiry {
        match self.facts.until.checked_sub(seconds(now)) {
            None => Expiry::Expired { on: self.last_day() },
            Some(left) if left < WARNING_DAYS * DAY => Expiry::Soon { days: left / DAY },
            Some(_) => Expiry::Fine,
        }
    }

    /// Whether `now` is within its dates.
    pub fn check_dates(&self, name: &SiteName, now: SystemTime) -> Result<Expiry, IdentityError> {
        if seconds(now) < self.facts.from {
            return Err(IdentityError::NotYetValid { name: name.clone(), from: day(self.facts.from) });
        }
        match self.expiry(now) {
            Expiry::Expired { on } => Err(IdentityError::Expired { name: name.clone(), on }),
            fine => Ok(fine),
        }
    }
}

/// An authority whose certificates a contract asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    certificate: Certificate,
}

impl Authority {
    /// Reads the authority's certificate from PEM text.
    pub fn from_pem(pem: &str) -> Result<Self, IdentityError> {
        let wrong = |problem: String| IdentityError::NotAnAuthority { problem };
        let certificate =
            Certificate::from_pem("the authority", pem).map_err(|error| wrong(error.to_string()))?;
        if certificate.chain.len() != 1 {
            return Err(wrong(format!("{} certificates in place of one", certificate.chain.len())));
        }
        let is_authority =
            X509Certificate::from_der(&certificate.chain[0]).is_ok_and(|(_, parsed)| parsed.is_ca());
        if !is_authority {
            return Err(wrong(format!("'{}' may not issue certificates", certificate.facts.subject)));
        }
        anchor_from_trusted_cert(&certificate.chain[0]).map_err(|e| wrong(e.to_string()))?;
        Ok(Self { certificate })
    }

    /// Its name in its own certificate.
    pub fn name(&self) -> &str {
        &self.certificate.facts.subject
    }

    /// Whether `certificate` was issued by this authority, perhaps through others, and is valid at `now`.
    pub fn check(
        &self,
        name: &SiteName,
        certificate: &Certificate,
        now: SystemTime,
    ) -> Result<(), IdentityError> {
        let authority = || self.name().to_owned();
        let chain =
            |problem: String| IdentityError::Chain { name: name.clone(), authority: authority(), problem };
        certificate.check_dates(name, now)?;
        if let Expiry::Expired { on } = self.certificate.expiry(now) {
            return Err(IdentityError::AuthorityExpired { authority: authority(), on });
        }
        let anchors =
            [anchor_from_trusted_cert(&self.certificate.chain[0]).map_err(|e| chain(e.to_string()))?];
        let (first, intermediates) = certificate.chain.split_first().expect("a certificate has a first part");
        let end = EndEntityCert::try_from(first).map_err(|e| chain(e.to_string()))?;
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds(now)));
        let verify = |usage| {
            let algorithms = webpki::ALL_VERIFICATION_ALGS;
            end.verify_for_usage(algorithms, &anchors, intermediates, time, usage, None, None).map(|_| ())
        };
        // The certificate says whose key it is; which of two sites dials the other is chance. So either usage will do.
        let result = verify(KeyUsage::client_auth()).or_else(|_| verify(KeyUsage::server_auth()));
        result.map_err(|error| match error {
            webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => {
                IdentityError::OtherAuthority { name: name.clone(), authority: authority() }
            }
            other => chain(other.to_string()),
        })
    }
}

impl Facts {
    fn read(der: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, parsed) = X509Certificate::from_der(der).map_err(|e| e.to_string())?;
        let names = parsed.subject_alternative_name().map_err(|e| e.to_string())?;
        let dns_names = names.iter().flat_map(|n| &n.value.general_names).filter_map(|n| match n {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        });
        let key = parsed.public_key();
        let is_ed25519 = key.algorithm.algorithm == x509_parser::oid_registry::OID_SIG_ED25519;
        let instant = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
        let validity = parsed.validity();
        Ok(Self {
            // Whoever issued the certificate chose the text, and people are shown it.
            subject: printable(&parsed.subject().to_string()).into_owned(),
            is_own: parsed.subject().as_raw() == parsed.issuer().as_raw(),
            dns_names: dns_names.collect(),
            key: key.subject_public_key.data.as_ref().try_into().ok().filter(|_| is_ed25519),
            from: instant(validity.not_before),
            until: instant(validity.not_after),
        })
    }
}

/// What every certificate and request of a site says.
fn params(name: &SiteName) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::new(vec![name.dns_name()]).map_err(cannot)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name.as_str());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// An identity key as the library for certificates wants it.
struct Signer<'a> {
    secret: &'a SecretKey,
    public: [u8; 32],
}

impl<'a> Signer<'a> {
    fn of(secret: &'a SecretKey) -> Self {
        Signer { secret, public: secret.public().to_bytes() }
    }
}

impl rcgen::PublicKeyData for Signer<'_> {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }
    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

impl rcgen::SigningKey for Signer<'_> {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(self.secret.sign_der(message))
    }
}

fn cannot(error: rcgen::Error) -> IdentityError {
    IdentityError::MakeCertificate { problem: error.to_string() }
}

/// Seconds since 1970; a clock before that counts as 0.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn date(seconds: u64) -> Result<time::OffsetDateTime, IdentityError> {
    i64::try_from(seconds)
        .ok()
        .and_then(|s| time::OffsetDateTime::from_unix_timestamp(s).ok())
        .ok_or_else(|| IdentityError::MakeCertificate { problem: "its dates are out of range".to_owned() })
}

/// A day in UTC as year-month-day.
fn day(seconds: u64) -> String {
    date(seconds).map_or("(no date)".to_owned(), |d| {
        format!("{:04}-{:02}-{:02}", d.year(), u8::from(d.month()), d.day())
    })
}
