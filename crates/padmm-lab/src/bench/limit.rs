//! What the machine can do: bytes read a second, multiplications and additions a second, and what a second thread adds.
//! They are measured beside the work, because a shared machine is not the same from hour to hour.

use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;

/// More than any cache holds.
const BYTES: usize = 512 << 20;
/// Each figure is the best of so many tries: a limit is what is reached when nobody disturbs.
const TRIES: usize = 5;

/// What one machine reached with a number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limit {
    /// Threads of the pool that it was measured in.
    pub threads: usize,
    /// Bytes a second that a sum over a large array reads.
    pub bytes_per_second: f64,
    /// Additions and multiplications a second of fused operations in registers.
    pub flops_per_second: f64,
}

impl Limit {
    /// Measures it in the current thread pool.
    pub fn measure() -> Self {
        let (threads, wide) = (rayon::current_num_threads(), pulp::Arch::new());
        let memory = vec![1.0f64; BYTES / 8];
        let parts: Vec<&[f64]> = memory.chunks(memory.len().div_ceil(threads)).collect();
        // Every value is one, so the sum is their number.
        let read = || 8.0 * parts.par_iter().map(|part| wide.dispatch(Sum(part))).sum::<f64>();
        let compute = || (0..threads).into_par_iter().map(|_| wide.dispatch(Fused)).sum::<f64>();
        let best = |work: &dyn Fn() -> f64| {
            let rate = |_| {
                let start = Instant::now();
                let amount = black_box(work());
                amount / start.elapsed().as_secs_f64()
            };
            (0..TRIES).map(rate).fold(0.0, f64::max)
        };
        Self { threads, bytes_per_second: best(&read), flops_per_second: best(&compute) }
    }

    /// The least seconds for reading so many bytes and doing so many operations.
    pub fn seconds(&self, bytes: f64, flops: f64) -> f64 {
        (bytes / self.bytes_per_second).max(flops / self.flops_per_second)
    }
}

/// The sum, in as many registers as keep the memory busy.
struct Sum<'a>(&'a [f64]);

impl pulp::WithSimd for Sum<'_> {
    type Output = f64;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> f64 {
        let mut sums = [0.0f64; 32];
        for chunk in self.0.as_chunks::<32>().0 {
            for k in 0..32 {
                sums[k] += chunk[k];
            }
        }
        sums.iter().sum()
    }
}

const ROUNDS: usize = 20_000_000;
/// Registers, so many that no operation waits for another.
const SUMS: usize = 10;

/// Fused operations in registers; returns how many additions and multiplications they were.
struct Fused;

impl pulp::WithSimd for Fused {
    type Output = f64;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) -> f64 {
        let (factor, step) = (simd.splat_f64s(black_box(1.0 - 1e-9)), simd.splat_f64s(black_box(1e-9)));
        let mut sums = [simd.splat_f64s(1.0); SUMS];
        for _ in 0..ROUNDS {
            for s in &mut sums {
                *s = simd.mul_add_e_f64s(*s, factor, step);
            }
        }
        black_box(sums);
        (2 * S::F64_LANES * SUMS * ROUNDS) as f64
    }
}
