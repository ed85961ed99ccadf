//! Axes: the range of the data, its ticks, and the way from a value to a place.

use crate::chart::text::{decimal, power_of_ten};

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equal lengths.
    #[default]
    Linear,
    /// Equal ratios are equal lengths; values of zero or less have no place and are left out.
    Log,
}

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// Empty for a minor tick.
    pub(crate) label: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    pub(crate) ticks: Vec<Tick>,
    /// What labels must be multiplied by, such as `×10⁻⁵`; empty if nothing.
    pub(crate) multiplier: String,
}

impl Scale {
    /// Whether `value` has a place on such an axis.
    pub(crate) fn admits(self, value: f64) -> bool {
        // Beyond this, the length of an axis would overflow.
        value.abs() <= 1e300 && (self == Self::Linear || value > 0.0)
    }
}

impl Axis {
    /// An axis that holds all `values` with a margin of `pad` (a share of the range) and about `target` ticks.
    pub(crate) fn new(scale: Scale, values: impl Iterator<Item = f64>, pad: f64, target: usize) -> Self {
        let range = values.filter(|&v| scale.admits(v)).fold(None, |range: Option<(f64, f64)>, v| {
            Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        match scale {
            Scale::Linear => Self::linear(range.unwrap_or((0.0, 1.0)), pad, target),
            Scale::Log => Self::log(range.unwrap_or((1.0, 10.0)), pad, target),
        }
    }

    fn linear((mut low, mut high): (f64, f64), pad: f64, target: usize) -> Self {
        if high - low <= 1e-12 * high.abs().max(low.abs()) {
            let around = if low == 0.0 { 1.0 } else { 0.1 * low.abs() };
            (low, high) = (low - around, high + around);
        }
        let margin = pad * (high - low);
        // An axis that starts near zero starts at zero, and one that does not go below zero shows no negatives.
        if pad > 0.0 && low >= 0.0 && low <= 0.25 * high {
            low = 0.0;
        } else {
            low -= margin;
        }
        high += margin;
        let step = nice_step((high - low) / target.max(2) as f64);
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        let largest = low.abs().max(high.abs());
        let exponent = largest.log10().floor() as i32;
        let (unit, multiplier) = if (-3..5).contains(&exponent) {
            (1.0, String::new())
        } else {
            (10f64.powi(exponent), format!("×{}", power_of_ten(exponent)))
        };
        let decimals = (-(step / unit).log10().floor()).max(0.0) as usize;
        let ticks = (first..=last)
            .map(|k| k as f64 * step)
            .map(|value| Tick { value, label: decimal(value / unit, decimals) })
            .collect();
        Self { scale: Scale::Linear, low, high, ticks, multiplier }
    }

    fn log((low, high): (f64, f64), pad: f64, target: usize) -> Self {
        let (mut low, mut high) = (low.log10(), high.log10());
        if high - low < 1e-9 {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let margin = pad * (high - low);
        (low, high) = (low - margin, high + margin);
        let (first, last) = (low.floor() as i32, high.ceil() as i32);
        let decades = (first..=last).filter(|&e| f64::from(e) >= low && f64::from(e) <= high).count();
        let plain = first >= -3 && last <= 4;
        let every = decades.div_ceil(target.max(2)).max(1) as i32;
        let digits = labelled_digits((low, high), target.max(2));
        let mut ticks = Vec::new();
        for exponent in first..=last {
            for digit in 1..10 {
                let value = f64::from(digit) * 10f64.powi(exponent);
                let place = value.log10();
                if place < low - 1e-9 || place > high + 1e-9 {
                    continue;
                }
                let labelled = if every > 1 {
                    digit == 1 && exponent.rem_euclid(every) == 0
                } else {
                    digits.contains(&digit)
                };
                if every > 1 && !labelled {
                    continue;
                }
                let label = match (labelled, plain, digit) {
                    (false, ..) => String::new(),
                    (true, true, _) => decimal(value, (-exponent).max(0) as usize),
                    (true, false, 1) => power_of_ten(exponent),
                    (true, false, _) => format!("{digit}×{}", power_of_ten(exponent)),
                };
                ticks.push(Tick { value, label });
            }
        }
        Self { scale: Scale::Log, low, high, ticks, multiplier: String::new() }
    }

    /// Where `value` lies, 0 at the start of the axis and 1 at its end; none if it has no place.
    ///
    /// Values beyond the ends are moved to them, so nothing is ever drawn outside.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        self.share(value).map(|share| share.clamp(0.0, 1.0))
    }

    /// The same, but values beyond the ends keep their place there.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        if !self.scale.admits(value) {
            return None;
        }
        let value = if self.scale == Scale::Log { value.log10() } else { value };
        let share = (value - self.low) / (self.high - self.low);
        // Rounding must not push a value at an end beyond it.
        let snapped = [0.0, 1.0].into_iter().find(|end| (share - end).abs() < 1e-9);
        Some(snapped.unwrap_or(share))
    }

    /// The scale and the values at both ends; logarithms to base ten on a logarithmic axis.
    pub(crate) fn ends(&self) -> (Scale, f64, f64) {
        (self.scale, self.low, self.high)
    }
}

/// The digits whose multiples of powers of ten are labelled on a logarithmic axis: as many as there is room for.
fn labelled_digits((low, high): (f64, f64), target: usize) -> &'static [i32] {
    let count = |digits: &[i32]| -> usize {
        let up_to = |digit: i32, end: f64| end - f64::from(digit).log10();
        let ticks = |&d: &i32| (up_to(d, high) + 1e-9).floor() - (up_to(d, low) - 1e-9).ceil() + 1.0;
        digits.iter().map(ticks).sum::<f64>() as usize
    };
    let choices: [&[i32]; 4] = [&[1, 2, 3, 5, 7], &[1, 2, 5], &[1, 5], &[1]];
    choices.into_iter().find(|digits| count(digits) <= target + 2).unwrap_or(&[1])
}

/// The step of 1, 2 or 5 times a power of ten that is nearest to `rough` as a ratio.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powi(rough.log10().floor() as i32);
    let share = rough / power;
    // The bounds are the geometric means of neighbouring steps.
    let nice = match share {
        _ if share < 2f64.sqrt() => 1.0,
        _ if share < 10f64.sqrt() => 2.0,
        _ if share < 50f64.sqrt() => 5.0,
        _ => 10.0,
    };
    nice * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|t| t.label.as_str()).filter(|l| !l.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::new(Scale::Linear, [1.0, 50.0].into_iter(), 0.0, 5);
        assert_eq!(labels(&axis), ["10", "20", "30", "40", "50"]);
        let axis = Axis::new(Scale::Linear, [0.36, 0.47].into_iter(), 0.04, 5);
        assert_eq!(labels(&axis), ["0.36", "0.38", "0.40", "0.42", "0.44", "0.46"]);
        let axis = Axis::new(Scale::Linear, [0.0, 3e-6].into_iter(), 0.04, 4);
        assert_eq!((labels(&axis), axis.multiplier.as_str()), (vec!["0", "1", "2", "3"], "×10⁻⁶"));
        assert_eq!(axis.place(0.0), Some(0.0));
    }

    #[test]
    fn log_ticks_are_decades() {
        let axis = Axis::new(Scale::Log, [1e-6, 1.0].into_iter(), 0.0, 7);
        assert_eq!(labels(&axis), ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        let axis = Axis::new(Scale::Log, [0.01, 100.0, 0.0, -3.0, f64::NAN].into_iter(), 0.0, 5);
        assert_eq!(labels(&axis), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(axis.place(1.0), Some(0.5));
        assert_eq!(axis.place(0.0), None);
    }

    #[test]
    fn few_decades_leave_room_for_halves() {
        let axis = Axis::new(Scale::Log, [0.05, 10.0].into_iter(), 0.0, 5);
        assert_eq!(labels(&axis), ["0.05", "0.1", "0.5", "1", "5", "10"]);
        let axis = Axis::new(Scale::Log, [0.05, 10.0].into_iter(), 0.0, 9);
        assert_eq!(labels(&axis), ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10"]);
    }

    #[test]
    fn degenerate_ranges_have_ticks() {
        for scale in [Scale::Linear, Scale::Log] {
            for values in [vec![], vec![3.0], vec![5.0, 5.0], vec![f64::NAN], vec![1e-300, 1e300]] {
                let axis = Axis::new(scale, values.iter().copied(), 0.04, 5);
                assert!(!labels(&axis).is_empty(), "{scale:?} {values:?}");
                assert!(axis.low < axis.high && axis.ticks.len() < 80, "{scale:?} {values:?}");
            }
        }
        let axis = Axis::new(Scale::Linear, [0.0, 0.0].into_iter(), 0.04, 5);
        assert_eq!(axis.place(0.0), Some(0.5));
    }
}
