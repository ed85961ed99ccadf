//! Splits: every record is dealt once, in the sizes and skews that were asked for.

use crate::common;

use common::dense;
use padmm_core::data::Dataset;
use padmm_core::plan::PlanError;
use padmm_core::schema::Encoded;
use padmm_data::{Source, load};
use padmm_sim::split::{Sites, partition};
use padmm_sim::{Holdout, SimError, Split};

fn shipped(name: &str) -> Encoded {
    load(&Source::Shipped(name.into())).unwrap().encoded
}

/// The first `n` records of Adult: no sites, no published test file.
fn some_adults(n: usize) -> Encoded {
    let mut encoded = shipped("adult");
    let mut records = encoded.records.empty_like();
    (0..n).for_each(|r| records.push_row(encoded.records.row(r)));
    encoded.records = records;
    encoded.official_test = None;
    encoded
}

/// Bits that tell one encoded record from another.
fn identity(data: &Dataset, r: usize) -> Vec<u64> {
    let mut all: Vec<u64> = dense(data, r).iter().map(|v| v.to_bits()).collect();
    all.push(data.row(r).label.to_bits());
    all
}

fn identities<'a>(sets: impl IntoIterator<Item = &'a Dataset>) -> Vec<Vec<u64>> {
    let of = |d: &'a Dataset| (0..d.n_records()).map(move |r| identity(d, r));
    let mut all: Vec<Vec<u64>> = sets.into_iter().flat_map(of).collect();
    all.sort_unstable();
    all
}

#[test]
fn every_record_is_dealt_exactly_once() {
    let adult = some_adults(3000);
    let heart = shipped("heart");
    let cases: [(&Encoded, Option<usize>, Split); 6] = [
        (&adult, Some(7), Split::Even),
        (&adult, Some(7), Split::LabelSkew(0.3)),
        (&adult, Some(7), Split::SizeSkew(0.7)),
        (&adult, Some(3000), Split::Even),
        (&heart, None, Split::Site),
        (&heart, Some(3), Split::LabelSkew(1.0)),
    ];
    for (encoded, n_agents, split) in cases {
        for holdout in [Holdout::None, Holdout::Fraction(0.25)] {
            if n_agents == Some(3000) && holdout != Holdout::None {
                continue;
            }
            let Sites { names, shards, test, .. } =
                partition(encoded, n_agents, split.clone(), holdout, 9).unwrap();
            assert_eq!(names.len(), shards.len());
            assert!(shards.iter().all(|s| s.n_records() > 0), "{split}: no agent is empty");
            let n = encoded.records.n_records();
            let expected = if holdout == Holdout::None { 0 } else { (0.25 * n as f64).round() as usize };
            assert_eq!(test.n_records(), expected);
            assert_eq!(identities(shards.iter().chain([&test])), identities([&encoded.records]), "{split}");
        }
    }
}

#[test]
fn even_means_even_and_random() {
    for n in [1, 2, 3, 5, 7, 64, 999, 1000] {
        let sites = partition(&some_adults(1000), Some(n), Split::Even, Holdout::None, 1).unwrap();
        let sizes: Vec<usize> = sites.shards.iter().map(Dataset::n_records).collect();
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{n}: {sizes:?}");
    }
    let encoded = some_adults(1000);
    let first =
        |seed| partition(&encoded, Some(2), Split::Even, Holdout::None, seed).unwrap().shards.remove(0);
    assert_ne!(identities([&first(1)]), identities([&first(2)]));
    assert_eq!(identities([&first(1)]), identities([&first(1)]));
}

#[test]
fn listed_sizes_are_dealt_to_the_record_and_the_rest_is_left_out() {
    let encoded = some_adults(1000);
    let split: Split = "sizes:300, 2x40,7".parse().unwrap();
    let sites = partition(&encoded, None, split.clone(), Holdout::Fraction(0.2), 1).unwrap();
    let sizes: Vec<usize> = sites.shards.iter().map(Dataset::n_records).collect();
    assert_eq!((sizes, sites.test.n_records(), sites.names.len()), (vec![300, 40, 40, 7], 200, 4));
    // Even sites of the same seed begin with the same records: one list moves records of another to a site of their own.
    let first = |text: &str| {
        partition(&encoded, Some(2), text.parse().unwrap(), Holdout::None, 1).unwrap().shards.remove(0)
    };
    assert_eq!(identities([&first("sizes:500,20")]), identities([&first("even")]));
}

#[test]
fn sites_of_the_column_are_the_agents() {
    let heart = shipped("heart");
    let column = heart.sites.clone().unwrap();
    let sites = partition(&heart, None, Split::Site, Holdout::None, 3).unwrap();
    assert_eq!(sites.names, column.names);
    for (s, shard) in sites.shards.iter().enumerate() {
        let mut own = heart.records.empty_like();
        for (r, &of) in column.of_record.iter().enumerate() {
            if of as usize == s {
                own.push_row(heart.records.row(r));
            }
        }
        assert_eq!(identities([shard]), identities([&own]), "{}", sites.names[s]);
    }
    assert_eq!(
        partition(&heart, Some(column.names.len()), Split::Site, Holdout::None, 3).unwrap().names,
        column.names
    );
}

#[test]
fn skews_are_skewed_and_fade_with_alpha() {
    let encoded = some_adults(4000);
    let shares = |split| {
        let sites = partition(&encoded, Some(8), split, Holdout::None, 2).unwrap();
        let positive = |d: &Dataset| d.labels().iter().filter(|&&z| z > 0.0).count() as f64;
        let share: Vec<f64> = sites.shards.iter().map(|d| positive(d) / d.n_records() as f64).collect();
        let size: Vec<f64> = sites.shards.iter().map(|d| d.n_records() as f64 / 4000.0).collect();
        (share, size)
    };
    let spread = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        (v.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / v.len() as f64).sqrt()
    };
    let even = shares(Split::Even);
    assert!(spread(&even.0) < 0.04 && spread(&even.1) < 1e-3);
    let (label, _) = shares(Split::LabelSkew(0.2));
    assert!(spread(&label) > 0.2, "{label:?}");
    assert!(spread(&shares(Split::LabelSkew(1e4)).0) < 0.03);
    let (share, size) = shares(Split::SizeSkew(0.3));
    assert!(spread(&size) > 0.1 && size.iter().fold(0.0, |a: f64, &b| a.max(b)) > 0.3, "{size:?}");
    assert!(spread(&shares(Split::SizeSkew(1e4)).1) < 0.01);
    // Sizes are skewed, labels are not: large agents have the data's own share.
    let overall = encoded.records.labels().iter().filter(|&&z| z > 0.0).count() as f64 / 4000.0;
    for (share, size) in share.iter().zip(&size).filter(|(_, size)| **size > 0.1) {
        assert!((share - overall).abs() < 0.1, "{share} of {size}");
    }
}

#[test]
fn the_official_test_file_is_set_aside() {
    let adult = shipped("adult");
    let sites = partition(&adult, Some(5), Split::Even, Holdout::Official, 1).unwrap();
    assert_eq!(sites.test.n_records(), 15_060);
    assert_eq!(sites.shards.iter().map(Dataset::n_records).sum::<usize>(), 30_162);
    let mut official = adult.records.empty_like();
    let flags = adult.official_test.as_ref().unwrap();
    flags.iter().enumerate().filter(|(_, f)| **f).for_each(|(r, _)| official.push_row(adult.records.row(r)));
    assert_eq!(identities([&sites.test]), identities([&official]));
}

#[test]
fn splits_and_holdouts_are_read_as_they_are_written() {
    for text in ["even", "site", "label-skew:0.25", "size-skew:2", "sizes:7,3x20,1"] {
        assert_eq!(text.parse::<Split>().unwrap().to_string(), text);
        assert_eq!(Split::try_from(text.to_owned()).unwrap().to_string(), text);
    }
    assert_eq!("label-skew".parse::<Split>().unwrap(), Split::LabelSkew(0.5));
    for text in [
        "odd",
        "",
        "label-skew:",
        "label-skew:x",
        "size-skew:0",
        "size-skew:-1",
        "label-skew:NaN",
        "label-skew:inf",
        "sizes:",
        "sizes:5,,5",
        "sizes:0",
        "sizes:0x5",
        "sizes:9999999999x5",
    ] {
        assert!(matches!(text.parse::<Split>(), Err(SimError::UnknownSplit { .. })), "{text}");
    }
    for text in ["none", "official", "0.25"] {
        assert_eq!(text.parse::<Holdout>().unwrap().to_string(), text);
    }
    for text in ["1", "1.5", "-0.1", "NaN", "some", ""] {
        assert!(matches!(text.parse::<Holdout>(), Err(SimError::UnknownHoldout { .. })), "{text}");
    }
}

#[test]
fn what_cannot_be_dealt_is_said() {
    let adult = some_adults(20);
    let try_deal = |n, split, holdout| match partition(&adult, n, split, holdout, 1) {
        Err(error) => error,
        Ok(_) => panic!("an error was expected"),
    };
    let none = Holdout::None;
    let e = try_deal(Some(21), Split::Even, none);
    assert!(matches!(e, SimError::TooManyAgents { agents: 21, records: 20 }), "{e}");
    let e = try_deal(Some(0), Split::Even, none);
    assert!(matches!(e, SimError::Plan(PlanError::OutOfRange { setting: "agents", .. })), "{e}");
    let e = try_deal(Some(16), Split::Even, Holdout::Fraction(0.25));
    assert!(matches!(e, SimError::TooManyAgents { agents: 16, records: 15 }), "{e}");
    let e = try_deal(Some(3), Split::Sizes(vec![5, 5]), none);
    assert!(matches!(e, SimError::AgentsAreSizes { agents: 3, sizes: 2 }), "{e}");
    let e = try_deal(None, Split::Sizes(vec![10, 11]), none);
    assert!(matches!(e, SimError::SizesTooLarge { wanted: 21, records: 20 }), "{e}");
    let e = try_deal(None, Split::Site, none);
    assert!(matches!(e, SimError::NoSiteColumn), "{e}");
    let e = try_deal(None, Split::Even, Holdout::Official);
    assert!(matches!(e, SimError::NoOfficialTest), "{e}");
    for fraction in [0.01, 0.99] {
        let e = try_deal(None, Split::Even, Holdout::Fraction(fraction));
        assert!(matches!(e, SimError::HoldoutLeavesNothing { records: 20, .. }), "{e}");
    }
    let e = try_deal(Some(20), Split::SizeSkew(0.01), none);
    assert!(
        matches!(&e, SimError::SplitLeavesEmpty { agents: 20, split } if split == "size-skew:0.01"),
        "{e}"
    );

    let mut heart = shipped("heart");
    let Err(e) = partition(&heart, Some(3), Split::Site, none, 1) else { panic!("an error was expected") };
    assert!(matches!(e, SimError::AgentsAreSites { agents: 3, .. }), "{e}");
    heart.sites.as_mut().unwrap().names.push("closed".into());
    let Err(e) = partition(&heart, None, Split::Site, none, 1) else { panic!("an error was expected") };
    assert!(matches!(&e, SimError::EmptySite { site } if site == "closed"), "{e}");
}
