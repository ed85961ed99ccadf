//! Secret bits and hostile messages of an audit, from a seed that is printed: an audit that failed can be looked at again. The noise
//! of the audited site never comes from here.

/// A stream of numbers by the generator SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Bits {
    state: u64,
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Bits {
    /// Stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut bits = Self { state: seed };
        let offset = bits.next_u64();
        bits.state = offset ^ stream.wrapping_mul(0xd134_2543_de82_ef95);
        bits.next_u64();
        bits
    }

    /// The next 64 bits of the stream.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from `0..n`; the bias of at most `n / 2⁶⁴` does not matter here.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next_u64() % n as u64) as usize
    }

    /// A fair coin: −1 or +1.
    pub fn label(&mut self) -> f64 {
        if self.next_u64() >> 63 == 0 { -1.0 } else { 1.0 }
    }

    /// A coin for each of `n` records.
    pub fn labels(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.label()).collect()
    }
}
