//! A function or procedure behind an entity: what a call takes by name, and what it gives.

use std::collections::{BTreeMap, HashSet};

use super::FieldType;
use crate::text::Ident;

/// What stands behind an entity of kind `Procedure`. It is the only routine of its name in its schema, so that a call
/// by name means this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routine {
    pub kind: RoutineKind,
    /// What a call says, in declared order: `In` and `InOut`, and `Out` of a procedure, whose call names those too, with
    /// NULL.
    pub params: Vec<Param>,
    pub returns: Returns,
    /// With a NULL among its arguments it is not run: it gives NULL, or no row.
    pub strict: bool,
    pub volatility: Volatility,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutineKind {
    /// `select ... from f(...)`
    Function,
    /// `call p(...)`, which may COMMIT and ROLLBACK.
    Procedure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}

/// One parameter under its exposed name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// The name in requests.
    pub name: String,
    /// The name in the database: `"argument" => $1`.
    pub argument: Ident,
    pub ty: FieldType,
    pub mode: Mode,
    /// It may be left out.
    pub has_default: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    In,
    /// Its value after the call is among [`Returns`] too.
    InOut,
    Out,
}

/// The rows that a call gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returns {
    /// A function that returns void, a procedure without OUT and INOUT parameters.
    Nothing,
    /// One row: a value, a composite (NULL: a row of NULLs), OUT and INOUT parameters.
    Row(Vec<Output>),
    /// SETOF, TABLE.
    Rows(Vec<Output>),
}

/// One field of those rows under its exposed name. A value alone is called as PostgreSQL calls it: as the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub name: String,
    /// As PostgreSQL names it: an OUT parameter, a column of the composite.
    pub column: Ident,
    pub ty: FieldType,
}

impl Returns {
    /// Empty where nothing is given.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        match self {
            Returns::Nothing => &[],
            Returns::Row(outputs) | Returns::Rows(outputs) => outputs,
        }
    }

    fn outputs_mut(&mut self) -> &mut [Output] {
        match self {
            Returns::Nothing => &mut [],
            Returns::Row(outputs) | Returns::Rows(outputs) => outputs,
        }
    }
}

/// A routine that was found under the schema and name of an entity, its names those of the database.
#[derive(Debug, Clone)]
pub struct RoutineInfo {
    pub schema: Ident,
    pub object: Ident,
    /// `None`: no request can call it.
    pub routine: Option<Routine>,
    /// SECURITY DEFINER: it runs with its owner's rights.
    pub definer: bool,
}

impl Routine {
    /// The same under the names of `mappings` (database name to exposed name). `None`: two parameters, or two fields of
    /// the result, would have one name.
    #[must_use]
    pub fn exposed(mut self, mappings: &BTreeMap<String, String>) -> Option<Routine> {
        let exposed =
            |name: &Ident| mappings.get(name.as_str()).map_or(name.as_str(), String::as_str).to_owned();
        for param in &mut self.params {
            param.name = exposed(&param.argument);
        }
        for output in self.returns.outputs_mut() {
            output.name = exposed(&output.column);
        }
        let differ = |names: Vec<&String>| names.iter().collect::<HashSet<_>>().len() == names.len();
        let params = differ(self.params.iter().map(|param| &param.name).collect());
        let outputs = differ(self.returns.outputs().iter().map(|output| &output.name).collect());
        (params && outputs).then_some(self)
    }
}
