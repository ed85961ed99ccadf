//! The data sets that are built into the program, byte for byte as UCI publishes them.

use crate::{DataError, parse_schema};
use flate2::read::GzDecoder;
use padmm_core::schema::{Encoded, Schema, SchemaError};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A data set that needs no download.
pub struct ShippedSet {
    /// What commands and plan files call it.
    pub name: &'static str,
    /// The title that people know it by.
    pub title: &'static str,
    /// What a record is and what is predicted.
    pub description: &'static str,
    /// Under which licence UCI publishes it.
    pub licence: &'static str,
    /// The citation that its licence asks for.
    pub citation: &'static str,
    /// Records before any are dropped.
    pub n_records: usize,
    /// The published files, in the order in which they are joined.
    pub files: &'static [ShippedFile],
    /// The schema, as text with its comments.
    pub schema_toml: &'static str,
    /// Column names of the published files, which have no header, and last that of the tag.
    columns: &'static [&'static str],
}

/// A file as UCI publishes it, with what is added to its records.
pub struct ShippedFile {
    /// Its file name at UCI.
    pub name: &'static str,
    /// SHA-256 of the uncompressed bytes.
    pub sha256: &'static str,
    /// What the added last column says of its records: the part, or the hospital.
    pub tag: &'static str,
    /// Whether it is the published test file.
    official_test: bool,
    compressed: &'static [u8],
}

const LICENCE: &str = "Creative Commons Attribution 4.0 International (CC BY 4.0)";

static SETS: &[ShippedSet] = &[
    #[cfg(feature = "adult")]
    ShippedSet {
        name: "adult",
        title: "Adult (Census Income)",
        description: "American census records of 1994; the label is an income above 50,000 dollars a year. \
                      Published as a training file (32,561 records) and a test file (16,281).",
        licence: LICENCE,
        citation: "Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. \
                   doi:10.24432/C5XW20",
        n_records: 48_842,
        files: &[
            ShippedFile {
                name: "adult.data",
                sha256: "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                tag: "train",
                official_test: false,
                compressed: include_bytes!("../data/adult/adult.data.gz"),
            },
            ShippedFile {
                name: "adult.test",
                sha256: "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                tag: "test",
                official_test: true,
                compressed: include_bytes!("../data/adult/adult.test.gz"),
            },
        ],
        schema_toml: include_str!("../data/adult/schema.toml"),
        columns: &[
            "age",
            "workclass",
            "fnlwgt",
            "education",
            "education-num",
            "marital-status",
            "occupation",
            "relationship",
            "race",
            "sex",
            "capital-gain",
            "capital-loss",
            "hours-per-week",
            "native-country",
            "income",
            "part",
        ],
    },
    ShippedSet {
        name: "heart",
        title: "Heart Disease, four hospitals",
        description: "Patients referred for coronary angiography in Cleveland (303), Budapest (294), Zurich and \
                      Basel (123) and Long Beach (200); the label is the presence of coronary disease. The site \
                      column names the hospital.",
        licence: LICENCE,
        citation: "Janosi, A., Steinbrunn, W., Pfisterer, M. and Detrano, R. (1989). Heart Disease. UCI Machine \
                   Learning Repository. doi:10.24432/C52P4X. Principal investigators: Andras Janosi, M.D., \
                   Hungarian Institute of Cardiology, Budapest; William Steinbrunn, M.D., University Hospital, \
                   Zurich; Matthias Pfisterer, M.D., University Hospital, Basel; Robert Detrano, M.D., Ph.D., \
                   V.A. Medical Center, Long Beach, and Cleveland Clinic Foundation",
        n_records: 920,
        files: &[
            ShippedFile {
                name: "processed.cleveland.data",
                sha256: "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
                tag: "cleveland",
                official_test: false,
                compressed: include_bytes!("../data/heart/processed.cleveland.data.gz"),
            },
            ShippedFile {
                name: "processed.hungarian.data",
                sha256: "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
                tag: "hungary",
                official_test: false,
                compressed: include_bytes!("../data/heart/processed.hungarian.data.gz"),
            },
            ShippedFile {
                name: "processed.switzerland.data",
                sha256: "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
                tag: "switzerland",
                official_test: false,
                compressed: include_bytes!("../data/heart/processed.switzerland.data.gz"),
            },
            ShippedFile {
                name: "processed.va.data",
                sha256: "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
                tag: "va",
                official_test: false,
                compressed: include_bytes!("../data/heart/processed.va.data.gz"),
            },
        ],
        schema_toml: include_str!("../data/heart/schema.toml"),
        columns: &[
            "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope",
            "ca", "thal", "num", "hospital",
        ],
    },
];

/// Every data set that is built in, in the order of listings.
pub fn shipped() -> &'static [ShippedSet] {
    SETS
}

/// The shipped set of this name.
pub fn shipped_set(name: &str) -> Result<&'static ShippedSet, DataError> {
    SETS.iter().find(|set| set.name == name).ok_or_else(|| DataError::UnknownSet {
        name: name.to_owned(),
        known: SETS.iter().map(|set| set.name).collect::<Vec<_>>().join(", "),
    })
}

impl ShippedFile {
    /// The bytes as UCI publishes them.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.compressed).read_to_end(&mut bytes).expect("what the tests unpack, a user can");
        bytes
    }
}

impl ShippedSet {
    /// The schema that is shipped with it; a test checks every one.
    pub fn schema(&self) -> Schema {
        parse_schema(self.schema_toml, Path::new(self.name))
            .expect("a shipped schema is checked by the tests")
    }

    /// Column names of the joined table.
    pub fn header(&self) -> Vec<String> {
        self.columns.iter().map(|&name| name.to_owned()).collect()
    }

    /// All records, those of the published test file marked.
    pub fn encode(&self) -> Result<Encoded, DataError> {
        let wrong = |problem| DataError::Records { path: PathBuf::from(self.name), problem };
        let schema = self.schema();
        let mut encoder = schema.encoder(&self.header()).map_err(wrong)?;
        let mut official_test = Vec::new();
        self.for_each(|row, cells, file| {
            if encoder.push_record(row, cells.iter().copied().map(Some))? {
                official_test.push(file.official_test);
            }
            Ok(())
        })
        .map_err(wrong)?;
        let mut encoded = encoder.finish();
        encoded.official_test = self.files.iter().any(|file| file.official_test).then_some(official_test);
        Ok(encoded)
    }

    /// Hands over every record, trimmed, with the tag as last cell; rows are numbered as in the exported file.
    ///
    /// Lines that are not records are the empty one at the end and, in adult.test, the first, which has one cell.
    pub fn for_each(
        &self,
        mut each: impl FnMut(u64, &[&str], &ShippedFile) -> Result<(), SchemaError>,
    ) -> Result<(), SchemaError> {
        let mut row = 1;
        for file in self.files {
            let bytes = file.bytes();
            let text = std::str::from_utf8(&bytes).expect("the published files are ASCII");
            for line in text.lines().filter(|line| line.contains(',')) {
                row += 1;
                let cells: Vec<&str> = line.split(',').map(str::trim).chain([file.tag]).collect();
                each(row, &cells, file)?;
            }
        }
        Ok(())
    }
}
