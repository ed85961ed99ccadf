//! Every frame comes back as it was, and nothing else is taken for one.

use super::*;
use proptest::prelude::*;

fn origin() -> impl Strategy<Value = Origin> {
    (any::<[u8; 32]>(), site()).prop_map(|(plan, sender)| Origin { plan, sender })
}

fn site() -> impl Strategy<Value = SiteIndex> {
    any::<u16>().prop_map(|place| SiteIndex(place.into()))
}

fn turn() -> impl Strategy<Value = Turn> {
    (any::<bool>(), 1u32..).prop_map(|(average, n)| if average { Turn::average(n) } else { Turn::model(n) })
}

fn payload() -> impl Strategy<Value = Payload> {
    let integer = -(1i64 << 53) + 1..1i64 << 53;
    prop_oneof![
        (-1022..970i32, prop::collection::vec(integer, 0..40))
            .prop_map(|(exponent, values)| Payload::Grid { exponent, values }),
        prop::collection::vec(-1e300..1e300f64, 0..40).prop_map(Payload::Plain),
    ]
}

fn signature() -> impl Strategy<Value = Signature> {
    prop::collection::vec(any::<u8>(), 64).prop_map(|v| Signature(v.try_into().unwrap()))
}

fn announcement() -> impl Strategy<Value = Announcement> {
    let hash = any::<[u8; 32]>;
    (origin(), 1u32.., hash(), any::<u64>(), hash(), hash()).prop_map(
        |(origin, round, ledger, entry, head, digest)| Announcement {
            origin,
            round,
            ledger,
            entry,
            head,
            digest,
        },
    )
}

/// An announcement as it is shown in a greeting.
fn shown(announcement: &Announcement) -> Shown {
    Frame::Announce(announcement.clone()).encode(&key())[..].try_into().unwrap()
}

fn frame() -> impl Strategy<Value = Frame> {
    let accepted = (site(), any::<[u8; 32]>(), signature()).prop_map(|(site, key, signature)| Accepted {
        site,
        key,
        signature,
    });
    let ready = (site(), signature()).prop_map(|(site, signature)| Ready { site, signature });
    let shown = prop::collection::vec(announcement().prop_map(|a| shown(&a)), 0..3);
    let words = (prop::collection::vec(accepted, 0..9), prop::collection::vec(ready, 0..9));
    prop_oneof![
        (origin(), any::<bool>(), shown, words).prop_map(|(origin, proof, shown, (accepted, ready))| {
            Frame::Hello { origin, proof, shown, accepted, ready }
        }),
        announcement().prop_map(Frame::Announce),
        (origin(), site(), any::<u64>(), any::<[u8; 32]>())
            .prop_map(|(origin, whose, entry, digest)| Frame::Receipt { origin, whose, entry, digest }),
        (origin(), turn(), any::<u64>(), any::<[u8; 32]>(), any::<Option<[u8; 32]>>(), payload()).prop_map(
            |(origin, turn, entry, head, state, payload)| {
                Frame::Model(ModelFrame { origin, turn, entry, head, state, payload })
            }
        ),
        (origin(), turn(), any::<u64>(), any::<bool>())
            .prop_map(|(origin, turn, counter, done)| { Frame::Status { origin, turn, counter, done } }),
        (origin(), site(), turn()).prop_map(|(origin, lost, turn)| Frame::Departure { origin, lost, turn }),
        (site(), turn()).prop_map(|(whose, turn)| Frame::Request { whose, turn }),
        Just(Frame::RequestPlan),
        Just(Frame::RequestHello),
        ".{0,60}".prop_map(Frame::PlanText),
    ]
}

fn key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32])
}

proptest! {
    #[test]
    fn frames_come_back_as_they_were_and_signed(frame in frame()) {
        let bytes = frame.encode(&key());
        prop_assert_eq!(&Frame::decode(&bytes).unwrap(), &frame);
        if frame.origin().is_some() {
            prop_assert!(is_signed_by(&bytes, &key().public()));
            prop_assert!(!is_signed_by(&bytes, &SecretKey::from_bytes(&[8; 32]).public()));
        }
    }

    /// Arbitrary bytes, and real frames with one byte changed or cut short: never a panic, and what decodes has one encoding.
    #[test]
    fn garbage_is_refused_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(frame) = Frame::decode(&bytes) {
            let end = bytes.len() - if frame.origin().is_some() { 64 } else { 0 };
            prop_assert_eq!(&frame.encode(&key())[..end], &bytes[..end]);
        }
    }

    #[test]
    fn a_changed_byte_is_an_error_or_breaks_the_signature(
        frame in frame(), place in any::<prop::sample::Index>(), flip in 1u8..
    ) {
        let mut bytes = frame.encode(&key()).to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        if let Ok(changed) = Frame::decode(&bytes) && changed.origin().is_some() {
            prop_assert!(!is_signed_by(&bytes, &key().public()));
        }
    }

    #[test]
    fn a_cut_frame_is_an_error(frame in frame(), place in any::<prop::sample::Index>()) {
        let bytes = frame.encode(&key());
        let cut = &bytes[..place.index(bytes.len())];
        let is_text = matches!(frame, Frame::PlanText(_)) && !cut.is_empty();
        prop_assert!(is_text || Frame::decode(cut).is_err());
    }
}

#[test]
fn a_model_frame_has_the_announced_size() {
    let payload = Payload::Grid { exponent: -30, values: vec![1; 1000] };
    let origin = Origin { plan: [1; 32], sender: SiteIndex(3) };
    for state in [None, Some([3; 32])] {
        let payload = payload.clone();
        let model = ModelFrame { origin, turn: Turn::model(9), entry: 4, head: [2; 32], state, payload };
        let bytes = Frame::Model(model).encode(&key());
        assert_eq!(bytes.len(), MODEL_FRAME_OVERHEAD + 8000 - if state.is_none() { 32 } else { 0 });
        assert_eq!(peek_model(&bytes), Some((origin, Turn::model(9))));
        assert!(bytes.len() <= largest_frame(1000, 5, 0));
    }
}

/// A length field that promises more than is there must not be believed.
#[test]
fn a_promised_length_allocates_nothing() {
    let payload = Payload::Grid { exponent: -30, values: vec![1] };
    let origin = Origin { plan: [1; 32], sender: SiteIndex(3) };
    let model = ModelFrame { origin, turn: Turn::model(9), entry: 4, head: [2; 32], state: None, payload };
    let mut bytes = Frame::Model(model).encode(&key()).to_vec();
    let length = bytes.len() - 64 - 8 - 4;
    bytes[length..length + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(Frame::decode(&bytes), Err(FrameError::Short));
}

/// A greeting with everything that it can have is not longer than what is read.
#[test]
fn the_longest_greeting_fits() {
    let origin = Origin { plan: [1; 32], sender: SiteIndex(3) };
    let (key, signature) = (key(), Signature([0; 64]));
    let accepted = (0..1000).map(SiteIndex).map(|site| Accepted { site, key: [1; 32], signature }).collect();
    let ready = (0..1000).map(SiteIndex).map(|site| Ready { site, signature }).collect();
    let shown = vec![[7; ANNOUNCEMENT]; MOST_SHOWN];
    let bytes = Frame::Hello { origin, proof: true, shown, accepted, ready }.encode(&key);
    assert_eq!(bytes.len(), largest_frame(1, 1000, 0));
}

#[test]
fn a_word_of_readiness_is_one_sites_for_one_plan() {
    let origin = Origin { plan: [1; 32], sender: SiteIndex(3) };
    let word = Ready::say(origin, &key());
    assert!(word.is_said_by(&[1; 32], &key().public()));
    assert!(!word.is_said_by(&[2; 32], &key().public()));
    assert!(!Ready { site: SiteIndex(4), ..word }.is_said_by(&[1; 32], &key().public()));
    assert!(!word.is_said_by(&[1; 32], &SecretKey::from_bytes(&[8; 32]).public()));
}
