//! Sites, authorities and a schema that the tests share.

#![allow(dead_code)]

pub(crate) mod network;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use padmm_core::schema::{Schema, SchemaDraft};
use padmm_node::identity::{Certificate, PublicKey, SecretKey, SiteName};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// An instant far from any real clock: 2033.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

pub(crate) fn days(n: u64) -> Duration {
    Duration::from_secs(86_400 * n)
}

pub(crate) fn name(text: &str) -> SiteName {
    SiteName::new(text).unwrap()
}

/// A key that is the same every time.
pub(crate) fn key(seed: u8) -> SecretKey {
    SecretKey::from_bytes(&[seed; 32])
}

/// An authority that the test runs itself.
pub(crate) struct TestAuthority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl TestAuthority {
    pub(crate) fn new(common_name: &str) -> Self {
        Self::valid(common_name, now() - days(10), now() + days(3650))
    }

    pub(crate) fn valid(common_name: &str, from: SystemTime, until: SystemTime) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        (params.not_before, params.not_after) = (date(from), date(until));
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for `dns_name` and `key`, valid for `valid` days from [`now`].
    pub(crate) fn issue(&self, dns_name: &str, key: &PublicKey, valid: u64) -> String {
        let mut params = CertificateParams::new(vec![dns_name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "a site");
        (params.not_before, params.not_after) = (date(now() - days(1)), date(now() + days(valid)));
        params.signed_by(&Subject(key.to_bytes()), &self.issuer).unwrap().pem()
    }

    /// An authority below this one, with its certificate.
    pub(crate) fn delegate(&self) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "delegate");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        (params.not_before, params.not_after) = (date(now() - days(10)), date(now() + days(3650)));
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }
}

fn date(at: SystemTime) -> time::OffsetDateTime {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap().as_secs();
    time::OffsetDateTime::from_unix_timestamp(seconds as i64).unwrap()
}

struct Subject([u8; 32]);

impl rcgen::PublicKeyData for Subject {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }
    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

/// A certificate that `key` signed itself at [`now`].
pub(crate) fn own_certificate(site: &str, key: &SecretKey, valid: u32) -> Certificate {
    Certificate::self_signed(&name(site), key, now(), valid).unwrap()
}

/// Two measurements, a category and a binary label.
pub(crate) fn schema() -> Schema {
    let draft: SchemaDraft = toml::from_str(
        r#"norm_bound = 1.0
intercept = true
missing = "drop"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
columns = [
  { name = "age", kind = "numeric", lower = 0, upper = 100 },
  { name = "dose", kind = "numeric", lower = 0, upper = 1 },
  { name = "blood", kind = "categorical", values = ["A", "B", "O"] },
]"#,
    )
    .unwrap();
    draft.check().unwrap()
}
