//! Words that an attacker chooses and a site shows: they stay within the line that tells of them.

use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::rustls::client::ResolvesClientCert;
use quinn::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use quinn::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use quinn::rustls::sign::CertifiedKey;
use quinn::rustls::{self, DigitallySignedStruct, SignatureScheme};

use super::*;

/// A line that the site never wrote, behind everything that could begin one.
const FORGED: &str =
    "2026-01-01T00:00:00Z info    ash: round 3 of 8: 204 bytes to each neighbour, epsilon so far 0.0000";
const BREAKS: &str = "\r\n\u{1b}[2K\u{85}\u{2028}\u{202e}";

/// Every line is the site's own, and the forged one is inside one of them with its line breaks as text.
fn assert_forged_nothing(log: &str) {
    let is_own =
        |line: &str| line.get(10..11) == Some("T") && line.contains(" ash: ") && !line.starts_with(FORGED);
    assert!(log.lines().all(is_own), "{log}");
    assert!(log.contains("epsilon so far 0.0000"), "the words did not arrive:\n{log}");
    assert!(!log.contains(['\r', '\u{1b}', '\u{85}', '\u{2028}', '\u{202e}']), "{log:?}");
}

#[test]
fn a_neighbours_plan_cannot_write_a_line_of_the_log() {
    run(async {
        let network = Network::new();
        let mut ash = network.start(ASH);
        let mut line = network.impostor(ASH).await;
        let origin = Origin { plan: [9; 32], ..network.origin(CEDAR) };
        let hello = Frame::Hello { origin, proof: false, shown: vec![], accepted: vec![], ready: vec![] };
        line.send(&network.signed(&hello)).await;
        let escaped = toml::Value::String(format!("{BREAKS}{FORGED}"));
        let text = network.contract.to_toml();
        let program = text.lines().find(|l| l.starts_with("program = ")).unwrap();
        let text = text.replace(program, &format!("program = {escaped}"));
        line.send(&network.signed(&Frame::PlanText(text))).await;
        assert!(!ash.ends().await.success());
        assert!(ash.log().contains("cedar holds another plan"), "{}", ash.log());
        assert_forged_nothing(&ash.log());
    });
}

/// Somebody without any key of the network dislikes the site's certificate, and says why in the packet that closes the handshake.
#[test]
fn a_strangers_reason_cannot_write_a_line_of_the_log() {
    run(async {
        let network = Network::new();
        let mut ash = network.start(ASH);
        ash.says("waiting for").await;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Complainer))
            .with_client_cert_resolver(Arc::new(Complainer));
        client.alpn_protocols = vec![b"padmm/3".to_vec()];
        let mut dialler = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = QuicClientConfig::try_from(client).unwrap();
        dialler.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
        let dial = dialler.connect(network.homes[ASH].config().listen(), "ash.padmm.internal").unwrap();
        assert!(dial.await.is_err());
        ash.says("a connection failed its handshake").await;
        assert_forged_nothing(&ash.log());
    });
}

#[derive(Debug)]
struct Complainer;

impl ServerCertVerifier for Complainer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Err(rustls::Error::General(format!("{BREAKS}{FORGED}")))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Sites use bare keys at both ends; this one is never asked for its own.
impl ResolvesClientCert for Complainer {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }

    fn has_certs(&self) -> bool {
        true
    }
}
