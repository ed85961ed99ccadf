//! A first schema for a file, from its header alone.
//!
//! No record is read: a bound or a list of categories taken from the data would make the schema itself a
//! release. So the draft guesses kinds from names, leaves every bound and category for a person to fill in, and
//! does not pass the check until they have.

use crate::DataError;
use crate::table::Table;
use padmm_core::schema::{SchemaError, looks_like_header, separator_of};
use std::fmt::Write;
use std::path::Path;

#[derive(Clone, Copy, PartialEq)]
enum Guess {
    Label,
    Site,
    Numeric,
    Categorical,
    Ignored,
}

/// Words in column names, and what they usually mean. The first that matches decides.
const WORDS: [(Guess, &[&str]); 5] = [
    (
        Guess::Ignored,
        &["id", "uuid", "mrn", "ssn", "name", "address", "phone", "email", "date", "index", "part"],
    ),
    (Guess::Label, &["label", "target", "outcome", "y", "income", "diagnosis", "event", "num"]),
    (Guess::Site, &["site", "hospital", "centre", "center", "clinic"]),
    (
        Guess::Categorical,
        &[
            "sex",
            "gender",
            "race",
            "ethnicity",
            "smoker",
            "smoking",
            "status",
            "type",
            "class",
            "workclass",
            "group",
            "category",
            "stage",
            "grade",
            "education",
            "occupation",
            "relationship",
            "country",
            "cp",
            "fbs",
            "restecg",
            "exang",
            "slope",
            "thal",
            "yes",
            "has",
            "is",
        ],
    ),
    (Guess::Numeric, &[]),
];

/// The text of a draft schema. The columns are those of the header, in order.
pub fn draft_schema(path: &Path) -> Result<String, DataError> {
    let table = Table::open(path)?;
    let header = table.header();
    if let Some(separator) = separator_of(header) {
        return Err(DataError::Records {
            path: path.to_owned(),
            problem: SchemaError::Separator { separator },
        });
    }
    if !looks_like_header(header) {
        return Err(DataError::Records { path: path.to_owned(), problem: SchemaError::NoHeader });
    }
    let mut guesses: Vec<Guess> = header.iter().map(|name| guess(name)).collect();
    // One label and one site: the last label and the first site that the names suggest.
    let label = guesses.iter().rposition(|g| *g == Guess::Label);
    let site = guesses.iter().position(|g| *g == Guess::Site);
    for (i, guess) in guesses.iter_mut().enumerate() {
        match *guess {
            Guess::Label if Some(i) != label => *guess = Guess::Numeric,
            Guess::Site if Some(i) != site => *guess = Guess::Categorical,
            _ => {}
        }
    }
    Ok(render(header, &guesses))
}

/// `numeric-count`, `numericCount` and `numeric_count` are all words `numeric`, `count`.
fn guess(name: &str) -> Guess {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() && spaced.ends_with(|last: char| last.is_lowercase()) {
            spaced.push(' ');
        }
        spaced.extend(c.to_lowercase());
    }
    let words: Vec<&str> = spaced.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    // "education-num" is a number, "num" alone is the label of a well-known data set.
    let matches = |list: &[&str], guess| match guess {
        Guess::Label => words.len() == 1 && list.contains(&words[0]),
        _ => words.iter().any(|word| list.contains(word)) && !words[1..].contains(&"num"),
    };
    let found = WORDS.iter().find(|&&(guess, list)| !words.is_empty() && matches(list, guess));
    found.map_or(Guess::Numeric, |&(guess, _)| guess)
}

fn render(header: &[String], guesses: &[Guess]) -> String {
    let quoted = |name: &String| toml::Value::String(name.clone()).to_string();
    let of = |wanted| header.iter().zip(guesses).find(|&(_, &g)| g == wanted).map(|(name, _)| quoted(name));
    let mut text = String::from(
        "# A draft from the header alone: kinds are guessed from names, and no record was read.\n\
         # Correct the kinds, and fill in every line that is marked FILL IN with a value that is public: from\n\
         # clinical practice or a code book, never the minimum, maximum or categories found in these records.\n\n\
         norm_bound = 1.0                # every encoded row is scaled down to this Euclidean norm\n\
         intercept = true                # adds a column of ones\n\
         missing = \"drop\"                # or \"fill\": then each column needs `fill`\n\
         missing_values = [\"?\", \"\", \"NA\"]\n\
         on_out_of_range = \"clip\"        # or \"error\"\n\
         on_unknown_category = \"error\"   # or \"other\": adds a column\n\n\
         [label]\n",
    );
    match of(Guess::Label) {
        Some(name) => writeln!(text, "column = {name}"),
        None => {
            writeln!(text, "# column = ?     # FILL IN: the column to predict; then remove it from `columns`")
        }
    }
    .expect("text grows");
    text += "kind = \"binary\"   # or \"numeric\" with `lower` and `upper`\n\
             # positive = [?]  # FILL IN: the texts of the positive class\n\
             # negative = [?]  # FILL IN: the texts of the negative class\n";
    if let Some(name) = of(Guess::Site) {
        text += &format!("\n[site]\ncolumn = {name}\n");
    }
    for (name, guess) in header.iter().zip(guesses) {
        let body = match guess {
            Guess::Label | Guess::Site => continue,
            Guess::Numeric => {
                "kind = \"numeric\"\n# lower = ?       # FILL IN: a public bound\n# upper = ?       # FILL IN: a public bound\n"
            }
            Guess::Categorical => {
                "kind = \"categorical\"\n# values = [?]    # FILL IN: the public categories\n"
            }
            Guess::Ignored => "kind = \"ignored\"\n",
        };
        text += &format!("\n[[columns]]\nname = {}\n{body}", quoted(name));
    }
    text
}
