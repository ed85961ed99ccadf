//! Rounds a second between five sites on a ring, 8 KiB a release, encrypted, on this machine: the whole site against a bare loop on
//! the same kind of transport. Prints ratios; the times themselves mean little.
//!
//! `cargo bench -p padmm-lab --bench rounds`
//!
//! - *bare*: five processes that do nothing but exchange 8 KiB with two neighbours over QUIC (quinn, mutual TLS), round by round.
//! - *sites*: five processes of the test build with a ledger in memory: sessions, signatures, gate, frames. Two records each and
//!   repeatable noise, because it is the network that is measured.
//! - *durable*: the same with ledgers on disk, against five processes' worth of files that are appended to and synced as often.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

#[path = "rounds/bare.rs"]
mod bare;
#[path = "rounds/sites.rs"]
mod sites;

use std::io::Write;
use std::time::Instant;

/// Sites of the ring.
pub const SITES: usize = 5;
/// Coefficients of a release: 8 KiB.
pub const FEATURES: usize = 1024;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|a| a == "--bare-peer") {
        return bare::peer(&arguments[place + 1..]);
    }
    // One of the four alone, for a profiler.
    if let Some(place) = arguments.iter().position(|a| a == "--only") {
        let rate = match arguments.get(place + 1).map(String::as_str) {
            Some("bare") => bare::run(1500),
            Some("sites") => sites::run(1500, true).0,
            Some("durable") => sites::run(500, false).0,
            Some("synced") => sync_rate(500),
            other => panic!("--only bare, sites, durable or synced, not {other:?}"),
        };
        return println!("{rate:.0} rounds/s");
    }
    let rounds: u32 = if arguments.iter().any(|a| a == "--quick") { 300 } else { 1500 };
    let series = 3;
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (mut bare, mut sites, mut durable, mut synced) = (vec![], vec![], vec![], vec![]);
    let mut memory = 0.0f64;
    for _ in 0..series {
        bare.push(bare::run(rounds));
        let (rate, mib) = sites::run(rounds, true);
        sites.push(rate);
        memory = memory.max(mib);
        synced.push(sync_rate(rounds / 3));
        durable.push(sites::run(rounds / 3, false).0);
    }
    let (bare, sites, durable, synced) = (median(bare), median(sites), median(durable), median(synced));
    println!("ring of {SITES}, {} bytes a release, {rounds} rounds, median of {series}", 8 * FEATURES);
    println!("bare QUIC loop                 {bare:8.0} rounds/s");
    println!(
        "sites, ledger in memory        {sites:8.0} rounds/s   ratio {:.2}   {}",
        sites / bare,
        met(sites / bare)
    );
    println!("append and sync alone          {synced:8.0} rounds/s");
    println!(
        "sites, durable ledger          {durable:8.0} rounds/s   ratio {:.2}   {}",
        durable / synced,
        met(durable / synced)
    );
    println!(
        "memory of a site while waiting {memory:8.1} MiB        {}",
        if memory < 40.0 { "met" } else { "NOT MET" }
    );
}

fn met(ratio: f64) -> &'static str {
    if ratio >= 0.5 { "met" } else { "NOT MET" }
}

/// What the disk allows: five writers, each appending a release and two received messages and syncing, a round at a time.
fn sync_rate(rounds: u32) -> f64 {
    let folder = tempfile::tempdir_in(".").expect("a folder here");
    let start = Instant::now();
    let barrier = std::sync::Barrier::new(SITES);
    std::thread::scope(|scope| {
        for site in 0..SITES {
            let (barrier, path) = (&barrier, folder.path().join(site.to_string()));
            scope.spawn(move || {
                let mut file = std::fs::File::create(path).expect("a file here");
                let bytes = vec![7u8; 3 * (8 * FEATURES + 160)];
                for _ in 0..rounds {
                    file.write_all(&bytes).and_then(|()| file.sync_data()).expect("the disk takes it");
                    barrier.wait();
                }
            });
        }
    });
    f64::from(rounds) / start.elapsed().as_secs_f64()
}
