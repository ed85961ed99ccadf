//! What a cell or a header that does not fit looks like, so that an error can say what to do. None of it quotes a cell.

use super::canonical;

/// What stands where a number should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberLook {
    /// Nothing that is recognized.
    Unclear,
    /// Digits with a comma among them.
    Comma,
    /// A day, with or without a time.
    Date,
    /// A number and then something else.
    Unit,
}

impl NumberLook {
    pub(super) fn of(cell: &str) -> Self {
        let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
        if cell.contains(',') && is_number(&cell.replace(',', "")) {
            Self::Comma
        } else if is_date(cell) {
            Self::Date
        } else if cell
            .char_indices()
            .any(|(i, c)| i > 0 && (c.is_alphabetic() || c == '%') && is_number(cell[..i].trim_end()))
        {
            Self::Unit
        } else {
            Self::Unclear
        }
    }

    /// What to do about it.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Unclear => "correct it, or list its text under `missing_values`",
            Self::Comma => "it has a comma: write a decimal point, as in 22.5, and nothing between thousands",
            Self::Date => {
                "it is a date: make a number of it, such as an age in years, or use kind = \"ignored\""
            }
            Self::Unit => "something follows the number, such as a unit: keep the number alone",
        }
    }
}

/// Three numbers with the same sign between them, and perhaps a time behind.
fn is_date(cell: &str) -> bool {
    let day = cell.split(['T', ' ']).next().unwrap_or_default();
    ['-', '/', '.'].into_iter().any(|sign| {
        let parts: Vec<&str> = day.split(sign).collect();
        let is_part = |part: &&str| (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        parts.len() == 3 && parts.iter().all(is_part)
    })
}

/// A text without what people write differently: capital letters, spaces, underscores and hyphens.
fn plain(text: &str) -> impl Iterator<Item = char> {
    canonical(text)
        .chars()
        .flat_map(char::to_lowercase)
        .filter(|c| !c.is_whitespace() && !['_', '-'].contains(c))
}

/// Whether a text is one of these but for capital letters, spaces, underscores and hyphens.
pub(super) fn is_nearly_one_of<'t>(text: &str, known: impl IntoIterator<Item = &'t str>) -> bool {
    known.into_iter().any(|known| plain(known).eq(plain(text)))
}

/// The advice about a text that is none of those that the schema lists.
pub(super) fn advice(is_nearly: bool, otherwise: &'static str) -> &'static str {
    if is_nearly {
        "it differs from one of them in capital letters, spaces, underscores or hyphens only: write it alike, or list it too"
    } else {
        otherwise
    }
}

/// What separates the columns of a file whose header has come in one piece.
pub fn separator_of(header: &[String]) -> Option<&'static str> {
    let [only] = header else { return None };
    let signs = [(';', "semicolons"), ('\t', "tabs"), ('|', "vertical bars")];
    signs.into_iter().find(|(sign, _)| only.contains(*sign)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_a_number_is_recognized() {
        for (cell, look) in [
            ("22,5", NumberLook::Comma),
            ("-1,234,567.5", NumberLook::Comma),
            ("1970-01-02", NumberLook::Date),
            ("2.1.1970", NumberLook::Date),
            ("1/2/70 08:30", NumberLook::Date),
            ("1970-01-02T08:30:00Z", NumberLook::Date),
            ("70 kg", NumberLook::Unit),
            ("70kg", NumberLook::Unit),
            ("5%", NumberLook::Unit),
            ("forty", NumberLook::Unclear),
            ("a,b", NumberLook::Unclear),
            ("<5", NumberLook::Unclear),
            ("inf", NumberLook::Unclear),
            ("", NumberLook::Unclear),
        ] {
            assert_eq!(NumberLook::of(cell), look, "{cell}");
        }
    }

    #[test]
    fn what_differs_in_writing_only_is_recognized() {
        assert!(is_nearly_one_of("non smoker", ["smoker", "Non-Smoker"]));
        assert!(!is_nearly_one_of("smokers", ["smoker"]));
        assert_eq!(separator_of(&["age;sex".to_owned()]), Some("semicolons"));
        assert_eq!(separator_of(&["age".to_owned(), "a;b".to_owned()]), None);
    }
}
