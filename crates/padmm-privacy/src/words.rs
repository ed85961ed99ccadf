//! Numbers said to people: one place, and always outward.
//!
//! What is shown of a privacy loss must not be below it. A text here, read as a number, is the value itself or above it; where it is the value
//! itself, it has all its digits. What protects, noise, is shown at the value or below it. Nothing else in the project formats an epsilon, a
//! delta or a probability, and a test looks through the sources for it.

use crate::outward::{add_down, add_up, div_up, exp_down, exp_up, mul_up};

/// Digits after the point of plain numbers.
const DECIMALS: usize = 4;
/// Digits after the point of numbers with an exponent.
const SMALL_DECIMALS: usize = 3;

/// An epsilon: four decimals, or four digits where it is small or large; never below it.
pub fn epsilon_text(epsilon: f64) -> String {
    upper_text(epsilon)
}

/// Any other number of which more is worse, such as a charge or a sensitivity; never below it.
pub fn upper_text(value: f64) -> String {
    rounded(value, Direction::Up)
}

/// What hides records, such as the size of noise, or is certainly reached, such as an epsilon that an attack has shown; never above it.
pub fn lower_text(value: f64) -> String {
    rounded(value, Direction::Down)
}

/// `e^epsilon`, by which a probability changes at most; never below it, and `∞` where it is beyond all floating-point numbers.
pub fn factor_text(epsilon: f64) -> String {
    upper_text(exp_up(epsilon))
}

/// A delta: as it was written where that takes at most four digits, else four digits, upward.
pub fn delta_text(delta: f64) -> String {
    if delta == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{delta:e}");
    let n_digits = shortest.split('e').next().unwrap_or_default().bytes().filter(u8::is_ascii_digit).count();
    if n_digits <= SMALL_DECIMALS + 1 { shortest } else { scientific(delta, Direction::Up) }
}

/// An epsilon with its delta, as a pair.
pub fn pair_text(epsilon: f64, delta: f64) -> String {
    format!("({}, {})", epsilon_text(epsilon), delta_text(delta))
}

/// A probability in percent with one decimal; never below it, and at most 100.
pub fn percent_text(probability: f64) -> String {
    let product = 100.0 * probability;
    // Up only where the product was rounded down, so that a half is 50.0 %.
    let percent =
        if 100f64.mul_add(probability, -product) > 0.0 { product.next_up() } else { product }.min(100.0);
    format!("{} %", decimal(percent, 1, Direction::Up))
}

/// How often the best test between two equally likely neighbours is right, rounded up: `(e^epsilon + delta) / (1 + e^epsilon)`.
pub fn best_guess(epsilon: f64, delta: f64) -> f64 {
    if epsilon == 0.0 && delta == 0.0 {
        return 0.5;
    }
    // Written with e^-epsilon, of which the quotient falls, and which does not overflow.
    let odds = exp_down(-epsilon);
    div_up(add_up(1.0, mul_up(delta, odds)), add_down(1.0, odds)).min(1.0)
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Up,
    Down,
}

fn rounded(value: f64, direction: Direction) -> String {
    if value.is_nan() {
        return "unknown".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    if (0.1..1e7).contains(&value) || value == 0.0 {
        decimal(value, DECIMALS, direction)
    } else {
        scientific(value, direction)
    }
}

/// A number that is not negative, with so many decimals.
fn decimal(value: f64, decimals: usize, direction: Direction) -> String {
    let nearest = format!("{value:.decimals$}");
    if is_outward(&nearest, value, direction) { nearest } else { moved(&nearest, direction) }
}

/// A number that is not negative, with four digits and an exponent.
fn scientific(value: f64, direction: Direction) -> String {
    let nearest = format!("{value:.SMALL_DECIMALS$e}");
    if is_outward(&nearest, value, direction) {
        return nearest;
    }
    let (digits, exponent) = nearest.split_once('e').unwrap_or((&nearest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    match moved(digits, direction) {
        // 9.999 and one more is 1.000 at the next exponent, and the other way round.
        carried if carried.starts_with("10.") => format!("1.{}e{}", "0".repeat(SMALL_DECIMALS), exponent + 1),
        carried if carried.starts_with("0.") => format!("9.{}e{}", "9".repeat(SMALL_DECIMALS), exponent - 1),
        digits => format!("{digits}e{exponent}"),
    }
}

/// Whether a text, read as a number, is `value` or on its outward side. Reading rounds to the nearest floating-point number, so a text that
/// reads as another number than `value` is on the same side of it as that number.
fn is_outward(text: &str, value: f64, direction: Direction) -> bool {
    text.parse().is_ok_and(|shown: f64| match direction {
        Direction::Up => shown >= value,
        Direction::Down => shown <= value,
    })
}

/// A decimal number, not negative, one unit of its last digit further; in decimal digits, because arithmetic would round.
fn moved(text: &str, direction: Direction) -> String {
    let (overflow, fresh) = if direction == Direction::Up { (b'9', b'0') } else { (b'0', b'9') };
    let mut digits: Vec<u8> = text.bytes().collect();
    for digit in digits.iter_mut().rev().filter(|d| d.is_ascii_digit()) {
        if *digit != overflow {
            *digit = if direction == Direction::Up { *digit + 1 } else { *digit - 1 };
            return digits.iter().map(|&d| d as char).collect();
        }
        *digit = fresh;
    }
    // All were nines: one place more. All were zeros cannot be, because nothing that is rounded down to zero is above itself.
    let rest: String = digits.iter().map(|&d| d as char).collect();
    if direction == Direction::Up { format!("1{rest}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_numbers_look_usual() {
        for (value, text) in [
            (5.0, "5.0000"),
            (0.693_701, "0.6938"),
            (0.0, "0.0000"),
            (0.1, "0.1000"),
            (1e-4, "1.000e-4"),
            (9.999_91e-3, "1.000e-2"),
            (0.099_999, "1.000e-1"),
            (9.999_91, "10.0000"),
            (3.0e7, "3.000e7"),
            (f64::INFINITY, "∞"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(epsilon_text(value), text);
        }
        assert_eq!(
            (lower_text(0.693_75), lower_text(1.000_01e-3)),
            ("0.6937".to_owned(), "1.000e-3".to_owned())
        );
        assert_eq!(lower_text(0.999_999e-3), "9.999e-4");
        assert_eq!((delta_text(1e-4), delta_text(1.292_1e-11)), ("1e-4".to_owned(), "1.293e-11".to_owned()));
        assert_eq!((delta_text(0.05), delta_text(1.0 / 3.0)), ("5e-2".to_owned(), "3.334e-1".to_owned()));
        assert_eq!(factor_text(5.0), "148.4132");
        assert_eq!((factor_text(0.0), factor_text(800.0)), ("1.0000".to_owned(), "∞".to_owned()));
        assert_eq!(percent_text(best_guess(1.0, 1e-4)), "73.2 %");
        assert_eq!(percent_text(best_guess(0.0, 0.0)), "50.0 %");
        assert_eq!(
            (percent_text(best_guess(50.0, 1e-4)), percent_text(1.0)),
            ("100.0 %".to_owned(), "100.0 %".to_owned())
        );
        assert_eq!(pair_text(1.0, 1e-5), "(1.0000, 1e-5)");
    }
}
