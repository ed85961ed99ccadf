//! Errors of the libraries as Python exceptions, in which settings are written as keywords.
//!
//! The classes are written in Python (`padmm._errors`), because they have two bases: every one is a `ValueError` too.

use padmm_core::agent::AgentError;
use padmm_core::calibration::CalibrationError;
use padmm_core::graph::GraphError;
use padmm_core::model::ModelError;
use padmm_core::plan::PlanError;
use padmm_core::schema::SchemaError;
use padmm_core::settings::{SettingsError, as_keywords};
use padmm_data::DataError;
use padmm_privacy::PrivacyError;
use padmm_sim::{SimError, simulation_settings};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// What kind of thing went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Settings, graphs and models that are refused.
    General,
    /// A budget that is impossible, or does not suffice.
    Budget,
    /// A schema, or records that do not fit one.
    Schema,
    /// A file that is not there.
    NotFound,
    /// A file that cannot be read or written.
    File,
}

/// An error on its way to Python.
pub struct Failure {
    kind: Kind,
    text: String,
}

impl Failure {
    /// Something wrong with what was given.
    pub fn general(text: impl Into<String>) -> Self {
        Self { kind: Kind::General, text: text.into() }
    }

    /// The same with words in front, as the command has them.
    pub fn context(self, words: &str) -> Self {
        Self { text: format!("{words}: {}", self.text), ..self }
    }

    /// A budget that is not one.
    pub fn budget(text: impl Into<String>) -> Self {
        Self { kind: Kind::Budget, text: text.into() }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let text = as_keywords(&failure.text, &simulation_settings());
        let name = match failure.kind {
            Kind::General => "PadmmError",
            Kind::Budget => "BudgetError",
            Kind::Schema => "SchemaError",
            Kind::NotFound => return PyFileNotFoundError::new_err(text),
            Kind::File => return PyOSError::new_err(text),
        };
        Python::attach(|py| {
            let class = py.import("padmm._errors").and_then(|module| module.getattr(name));
            match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
                Ok(class) => Self::from_type(class, text),
                Err(problem) => problem,
            }
        })
    }
}

fn privacy_kind(error: &PrivacyError) -> Kind {
    match error {
        PrivacyError::OutOfRange { name: "epsilon" | "delta", .. }
        | PrivacyError::DecayTooSteep { .. }
        | PrivacyError::Compared { is_budget: true, .. }
        | PrivacyError::AlreadyCharged { .. } => Kind::Budget,
        _ => Kind::General,
    }
}

fn plan_kind(error: &PlanError) -> Kind {
    match error {
        PlanError::OutOfRange { setting: "epsilon" | "delta", .. } => Kind::Budget,
        PlanError::Privacy(error) => privacy_kind(error),
        _ => Kind::General,
    }
}

fn sim_kind(error: &SimError) -> Kind {
    match error {
        SimError::Plan(error) => plan_kind(error),
        SimError::Privacy(error)
        | SimError::Calibration(CalibrationError::Privacy(error))
        | SimError::Agent { problem: AgentError::Privacy(error), .. } => privacy_kind(error),
        _ => Kind::General,
    }
}

fn data_kind(error: &DataError) -> Kind {
    match error {
        DataError::Read { problem, .. } if problem.kind() == std::io::ErrorKind::NotFound => Kind::NotFound,
        DataError::Read { .. } | DataError::Write { .. } | DataError::Exists { .. } => Kind::File,
        DataError::Records { .. } | DataError::SchemaFile { .. } => Kind::Schema,
        _ => Kind::General,
    }
}

macro_rules! failures {
    ($($error:ty => $kind:expr;)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                let kind: fn(&$error) -> Kind = $kind;
                Failure { kind: kind(&error), text: error.to_string() }
            }
        }
    )*};
}

failures! {
    SimError => sim_kind;
    PlanError => plan_kind;
    PrivacyError => privacy_kind;
    DataError => data_kind;
    SchemaError => |_| Kind::Schema;
    GraphError => |_| Kind::General;
    SettingsError => |_| Kind::General;
    ModelError => |_| Kind::General;
    CalibrationError => |error| match error {
        CalibrationError::Privacy(error) => privacy_kind(error),
        CalibrationError::GraphNeeded { .. } | CalibrationError::Marginal { .. } => Kind::General,
    };
}
