//! Floating-point noise from a source of discrete Gaussian integers: normals, and vectors with a gamma-distributed norm.
//!
//! Doubles cannot follow a continuous law exactly, so what is drawn here is for comparison in simulation.

use padmm_privacy::{NoiseSource, PrivacyError};

/// Scale at which the integers are drawn; divided by it they are normals on a grid of 2^-40.
const SCALE: f64 = (1u64 << 40) as f64;

/// `n` independent standard normals, up to a grid of 2^-40.
pub(crate) fn standard_normals(source: &mut dyn NoiseSource, n: usize) -> Result<Vec<f64>, PrivacyError> {
    let mut integers = vec![0; n];
    source.fill(SCALE, &mut integers)?;
    Ok(normals(&integers).collect())
}

fn normals(integers: &[i64]) -> impl Iterator<Item = f64> {
    integers.iter().map(|&integer| integer as f64 / SCALE)
}

/// What [`gamma_norm_vector`] is made of, for `n` coordinates: normals for a direction, and twice as many for a length.
pub(crate) fn gamma_integers(source: &mut dyn NoiseSource, n: usize) -> Result<Vec<i64>, PrivacyError> {
    let mut integers = vec![0; 3 * n];
    let (direction, radius) = integers.split_at_mut(n);
    source.fill(SCALE, direction)?;
    source.fill(SCALE, radius)?;
    Ok(integers)
}

/// EQUATIONS §4 for pure mechanisms: a vector with `n` coordinates of density proportional to `exp(-rate |b|)`.
///
/// ```text
/// b = r v/|v|,   v ~ N(0, I_n),   r ~ Gamma(shape n, scale 1/rate) = (1/(2 rate)) * (sum of 2n squared normals)
/// ```
///
/// In polar coordinates the density's norm has the law `r^(n-1) exp(-rate r)`, and a gamma variable of integer shape is
/// half a chi-square variable of twice as many degrees of freedom. `E|b| = n/rate`, `E|b|^2 = n(n+1)/rate^2`.
pub(crate) fn gamma_norm_vector(integers: &[i64], rate: f64) -> Result<Vec<f64>, PrivacyError> {
    let n = integers.len() / 3;
    let direction: Vec<f64> = normals(&integers[..n]).collect();
    let squares = normals(&integers[n..]).map(|z| z * z);
    let radius = 0.5 * squares.sum::<f64>() / rate;
    let length = direction.iter().map(|z| z * z).sum::<f64>().sqrt();
    // A source that is silent in tests gives no direction and needs none.
    if radius == 0.0 {
        return Ok(vec![0.0; n]);
    }
    if length == 0.0 {
        return Err(PrivacyError::NoiseFailed { reason: "the source gave no direction".into() });
    }
    Ok(direction.into_iter().map(|z| radius * (z / length)).collect())
}
