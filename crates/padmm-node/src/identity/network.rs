//! `[network]` in `site.toml`: how a site that can only dial out reaches the others.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use super::card::check_relay;
use super::private_file::read_text;
use super::{Card, IdentityError, SiteConfig};

/// Where a proxy's password is taken from if `site.toml` names no file.
pub const PROXY_PASSWORD: &str = "PADMM_PROXY_PASSWORD";

/// The table as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct NetworkDraft {
    relay: Option<String>,
    #[serde(default)]
    relay_only: bool,
    proxy: Option<String>,
    proxy_password_file: Option<PathBuf>,
    authority: Option<PathBuf>,
}

/// The table, checked; the files that it names are not read yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    relay: Option<String>,
    relay_only: bool,
    proxy: Option<Url>,
    proxy_password_file: Option<PathBuf>,
    authority: Option<PathBuf>,
}

impl NetworkDraft {
    /// Paths are relative to `folder`.
    pub(super) fn check(self, folder: &Path) -> Result<NetworkConfig, IdentityError> {
        self.relay.iter().try_for_each(|url| check_relay(url))?;
        let proxy = self.proxy.as_deref().map(parse_proxy).transpose()?;
        let needs = |key, found: &str, rule| IdentityError::Setting { key, found: found.to_owned(), rule };
        if self.proxy_password_file.is_some() && proxy.as_ref().is_none_or(|url| url.username().is_empty()) {
            let rule =
                "left out, unless `proxy` is there and names a user, like http://user@proxy.example.org:3128";
            return Err(needs("proxy-password-file", "a file", rule));
        }
        Ok(NetworkConfig {
            relay: self.relay,
            relay_only: self.relay_only,
            proxy,
            proxy_password_file: self.proxy_password_file.map(|file| folder.join(file)),
            authority: self.authority.map(|file| folder.join(file)),
        })
    }
}

/// A URL of a proxy. Its password is not part of it: people show and send this file.
fn parse_proxy(text: &str) -> Result<Url, IdentityError> {
    let url = text.parse::<Url>().ok();
    if url.as_ref().is_some_and(|url| url.password().is_some()) {
        return Err(IdentityError::ProxyPassword);
    }
    let is_proxy = |url: &Url| {
        ["http", "https"].contains(&url.scheme())
            && url.has_host()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
    };
    url.filter(is_proxy).ok_or_else(|| IdentityError::Setting {
        key: "proxy",
        // What is not understood may hold a password.
        found: text.rsplit('@').next().unwrap_or_default().to_owned(),
        rule: "http://, a user and @ if the proxy asks for one, host and port, like http://user@proxy.example.org:3128",
    })
}

impl NetworkConfig {
    /// The relay that the site keeps a connection to, if the file names one.
    pub fn relay(&self) -> Option<&str> {
        self.relay.as_deref()
    }

    /// Whether everything goes through relays.
    pub fn is_relay_only(&self) -> bool {
        self.relay_only
    }
}

/// How the engine gets out of the house: what `site.toml` and the site's card say, with the files that they name.
#[derive(Clone, Default)]
pub struct WayOut {
    /// The relay that the site keeps a connection to.
    pub relay: Option<String>,
    /// Nothing is sent but through relays, and there is no UDP socket.
    pub relay_only: bool,
    /// Relays are reached through this proxy; with user and password.
    proxy: Option<Zeroizing<String>>,
    /// The proxy as it is shown.
    shown_proxy: Option<String>,
    /// Authorities that are trusted beside those of the system.
    pub authorities: Vec<CertificateDer<'static>>,
}

impl fmt::Debug for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WayOut")
            .field("relay", &self.relay)
            .field("relay_only", &self.relay_only)
            .field("proxy", &self.shown_proxy)
            .field("authorities", &self.authorities.len())
            .finish()
    }
}

impl WayOut {
    /// Reads the password and the authorities.
    pub fn of(config: &SiteConfig, card: &Card) -> Result<Self, IdentityError> {
        let network = config.network();
        let relay = network.relay.clone().or_else(|| card.relay().map(str::to_owned));
        if network.relay_only && relay.is_none() {
            return Err(IdentityError::Missing {
                path: config.path().to_owned(),
                what: "relay, and `relay-only` needs one",
                example: "`relay = \"https://relay.example.org\"` below `[network]`, and make a card that names it with `padmm-site site move --relay`",
            });
        }
        let proxy = network.proxy.as_ref().map(|url| with_password(url, network, config)).transpose()?;
        let authorities = network.authority.as_deref().map(read_authorities).transpose()?;
        Ok(Self {
            relay,
            relay_only: network.relay_only,
            proxy,
            shown_proxy: network.proxy.as_ref().map(shown),
            authorities: authorities.unwrap_or_default(),
        })
    }

    /// A relay, and nothing else that is out of the ordinary.
    pub fn by_relay(relay: Option<&str>) -> Self {
        Self { relay: relay.map(str::to_owned), ..Self::default() }
    }

    /// The proxy, with its password, for the engine alone.
    pub(crate) fn proxy(&self) -> Option<Url> {
        self.proxy.as_ref().and_then(|url| url.parse().ok())
    }

    /// The proxy as people may see it.
    pub fn shown_proxy(&self) -> Option<&str> {
        self.shown_proxy.as_deref()
    }
}

/// Without the slash that the parser adds.
fn shown(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

fn with_password(
    url: &Url,
    network: &NetworkConfig,
    config: &SiteConfig,
) -> Result<Zeroizing<String>, IdentityError> {
    let mut url = url.clone();
    if !url.username().is_empty() {
        let text = match &network.proxy_password_file {
            Some(file) => read_text(file)?,
            None => Zeroizing::new(std::env::var(PROXY_PASSWORD).map_err(|_| IdentityError::Missing {
                path: config.path().to_owned(),
                what: "password for the proxy's user",
                example: "`proxy-password-file = \"proxy.password\"` below `[network]`, or set the environment variable PADMM_PROXY_PASSWORD",
            })?),
        };
        put_password(&mut url, &text);
    }
    Ok(Zeroizing::new(url.into()))
}

/// The last line's end is not part of it.
fn put_password(url: &mut Url, text: &str) {
    // Whatever has a meaning in a URL is encoded there, but for the sign that says so.
    let password = Zeroizing::new(text.trim_end_matches(['\r', '\n']).replace('%', "%25"));
    // A URL with a host takes a password.
    let _ = url.set_password(Some(&password));
}

fn read_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let pem =
        std::fs::read(path).map_err(|problem| IdentityError::Read { path: path.to_owned(), problem })?;
    let wrong = |problem: String| IdentityError::Text { path: path.to_owned(), line: None, problem };
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|e| wrong(format!("it is not PEM text with certificates ({e})")))?;
    if found.is_empty() {
        return Err(wrong(
            "no certificate is in it: `authority` names PEM text, `-----BEGIN CERTIFICATE-----` and so on"
                .to_owned(),
        ));
    }
    for der in &found {
        webpki::anchor_from_trusted_cert(der)
            .map_err(|e| wrong(format!("a certificate in it is not an authority's ({e})")))?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &str) -> Result<NetworkConfig, IdentityError> {
        toml::from_str::<NetworkDraft>(table).unwrap().check(Path::new("/home"))
    }

    #[test]
    fn what_is_not_understood_is_named_and_no_password_is_repeated() {
        for (table, words) in [
            ("relay = \"relay.example.org\"", "`relay` is 'relay.example.org', but it must be a URL"),
            ("relay = \"https://a{b.example.org\"", "`relay` is"),
            ("relay = \"https://user:sesame@relay.example.org\"", "`relay` is 'relay.example.org'"),
            ("proxy = \"proxy.example.org:3128\"", "`proxy` is"),
            ("proxy = \"socks5://proxy.example.org:1080\"", "`proxy` is"),
            ("proxy = \"http://proxy.example.org:3128/path\"", "`proxy` is"),
            ("proxy = \"http://user:sesame@proxy.example.org:3128\"", "proxy-password-file"),
            ("proxy = \"user:sesame@proxy.example.org:3128\"", "`proxy` is 'proxy.example.org:3128'"),
            ("proxy-password-file = \"p\"", "`proxy-password-file` is"),
            ("proxy = \"http://proxy.example.org:3128\"\nproxy-password-file = \"p\"", "names a user"),
        ] {
            let error = check(table).unwrap_err().to_string();
            assert!(error.contains(words), "{table}: {error}");
            assert!(!error.contains("sesame"), "{error}");
        }
        assert!(toml::from_str::<NetworkDraft>("relay_only = true").is_err(), "unknown keys are refused");
        let fine = check("proxy = \"http://user@proxy.example.org:3128\"\nauthority = \"a.pem\"").unwrap();
        assert_eq!(fine.authority.as_deref(), Some(Path::new("/home/a.pem")));
        assert_eq!(shown(&fine.proxy.unwrap()), "http://user@proxy.example.org:3128");
    }

    /// What the engine reads from the URL, it decodes.
    #[test]
    fn a_password_reaches_the_proxy_as_it_is() {
        let mut url = Url::parse("http://user@proxy.example.org:3128").unwrap();
        for password in ["a%41b", "100%", "%", "a:b@c/d?e#f", "ä"] {
            put_password(&mut url, &format!("{password}\n"));
            assert_eq!(decoded(url.password().unwrap()), password);
        }
    }

    fn decoded(text: &str) -> String {
        let mut bytes = text.bytes();
        let mut found = vec![];
        while let Some(b) = bytes.next() {
            found.push(if b == b'%' {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            } else {
                b
            });
        }
        String::from_utf8(found).unwrap()
    }

    #[test]
    fn an_authority_is_a_file_with_certificates_of_authorities() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.pem");
        let error = read_authorities(&file).unwrap_err().to_string();
        assert!(error.contains("a.pem"), "{error}");
        std::fs::write(&file, "nothing").unwrap();
        let error = read_authorities(&file).unwrap_err().to_string();
        assert!(error.contains("a.pem") && error.contains("BEGIN CERTIFICATE"), "{error}");
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        std::fs::write(&file, format!("{pem}{pem}")).unwrap();
        assert_eq!(read_authorities(&file).unwrap().len(), 2);
    }
}
