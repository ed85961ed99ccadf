//! The generator of what is random and public: graphs, the order of a token's visits, how long to wait before dialling again.

/// SplitMix64 (Steele, Lea and Flood 2014): a counter, mixed.
///
/// The graph of a run is public, so nothing here needs to be unpredictable; it needs to give the same graph for
/// the same seed permanently, on every machine. This is not privacy randomness, and no noise may be drawn from it.
#[derive(Clone, Debug)]
pub struct PublicSeed {
    state: u64,
}

impl PublicSeed {
    /// The stream of numbers that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits of the stream.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[0, 1)`, a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `0..n`, without bias: draws from the incomplete last block are thrown away.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "a draw from an empty range");
        let n = n as u64;
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let draw = self.next_u64();
            if draw < limit {
                return (draw % n) as usize;
            }
        }
    }

    /// Puts `items` in a random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first outputs for seed 1234567, as in the reference implementation's published vectors.
        let mut seed = PublicSeed::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| seed.next_u64()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_all_of_it() {
        let mut seed = PublicSeed::new(7);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[seed.below(5)] = true;
            assert!((0.0..1.0).contains(&seed.unit()));
        }
        assert!(seen.iter().all(|&s| s));
        let mut order: Vec<usize> = (0..50).collect();
        seed.shuffle(&mut order);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}
