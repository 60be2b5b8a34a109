//! What a filter may build up on one row, so that no text of a caller decides how much memory a session takes.
//!
//! PostgreSQL frees what functions leave behind only when it is done with the row: a long text that is read from
//! outside its row is copied for every reference, and `concat` makes a copy of all that it joins. Comparisons free what they
//! read. So the copies of every field are counted here, in lengths of its value, and where they are many, PostgreSQL looks at
//! the lengths first. `docs/decisions/growth.md` has the measurements.

use std::collections::BTreeMap;

use super::refusal::FilterRefusal;
use crate::catalog::{Entity, TypeKind};
use crate::query::{Cast, Predicate, Value};
use crate::request::Function;

/// Copies of values that conditions may make on a row without a look at lengths: an index over an expression such as
/// `lower(name)` serves only conditions that stand by themselves. Six of those, or 24 searches.
const FREE: u64 = 24;
/// By how much a text may become longer when the case of its letters changes.
const LONGER: u64 = 3;
/// A decimal may have 147,455 digits, 72 KiB, and a step leaves two behind.
const MAX_STEPS: usize = 256;
/// Comparisons of ranges copy what they read.
const MAX_RANGES: usize = 32;

/// The same condition, which raises (54000) for a row on which it would build up more than
/// [`crate::query::MAX_BUILT`]. What is cheap stands by itself, for indexes to serve.
pub(crate) fn bounded(entity: &Entity, predicate: Predicate) -> Result<Predicate, FilterRefusal> {
    let mut total = Growth::new(entity);
    total.predicate(&predicate);
    if MAX_STEPS < total.steps {
        return Err(FilterRefusal::Steps { max: MAX_STEPS });
    }
    if MAX_RANGES < total.ranges {
        return Err(FilterRefusal::Ranges { max: MAX_RANGES });
    }
    if total.copies() <= FREE {
        return Ok(predicate);
    }
    let parts = match predicate {
        Predicate::All(parts) => parts,
        other => vec![other],
    };
    let (mut light, mut heavy) = (Vec::new(), Vec::new());
    let (mut free, mut looked_at) = (0, Growth::new(entity));
    for part in parts {
        let mut growth = Growth::new(entity);
        growth.predicate(&part);
        match free + growth.copies() {
            sum if sum <= FREE => {
                free = sum;
                light.push(part);
            }
            _ => {
                looked_at.add(&growth.built, 1);
                heavy.push(part);
            }
        }
    }
    let inner = if heavy.len() == 1 { heavy.remove(0) } else { Predicate::All(heavy) };
    let within = Predicate::Within { copies: looked_at.built.into_iter().collect(), inner: Box::new(inner) };
    if light.is_empty() {
        return Ok(within);
    }
    light.push(within);
    Ok(Predicate::All(light))
}

/// How often the value of each field is copied.
type Copies = BTreeMap<usize, u64>;

struct Growth<'a> {
    entity: &'a Entity,
    built: Copies,
    /// Computations with decimals.
    steps: usize,
    /// Comparisons of ranges.
    ranges: usize,
}

/// How long a text may be.
#[derive(Default)]
struct Length {
    of: Copies,
    /// The case of letters was changed, which makes a text longer once, however often it is done.
    is_cased: bool,
}

impl Length {
    fn factor(&self) -> u64 {
        if self.is_cased { LONGER } else { 1 }
    }
}

impl<'a> Growth<'a> {
    fn new(entity: &'a Entity) -> Growth<'a> {
        Growth { entity, built: Copies::new(), steps: 0, ranges: 0 }
    }

    fn copies(&self) -> u64 {
        self.built.values().fold(0, |sum: u64, n| sum.saturating_add(*n))
    }

    fn add(&mut self, copies: &Copies, times: u64) {
        for (field, n) in copies {
            let sum = self.built.entry(*field).or_default();
            *sum = sum.saturating_add(n.saturating_mul(times));
        }
    }

    fn predicate(&mut self, predicate: &Predicate) {
        match predicate {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().for_each(|part| self.predicate(part));
            }
            Predicate::Not(inner) | Predicate::NotTrue(inner) | Predicate::Within { inner, .. } => {
                self.predicate(inner);
            }
            // what it builds up on a row of its own is bounded there
            Predicate::Related(_) => {}
            Predicate::IsNull { value, .. } | Predicate::Is(value) => {
                self.value(value);
            }
            Predicate::Compare { left, right, .. } => {
                self.compared(left);
                self.compared(right);
            }
            Predicate::OneOf { value, values } => {
                values.iter().for_each(|value| self.compared(value));
                // PostgreSQL repeats the left side for each value that is no constant.
                let n_fields = values.iter().filter(|value| value.has_field()).count();
                (0..=n_fields).for_each(|_| self.compared(value));
                let n_more = if self.is_range(value) { values.len() - 1 } else { 0 };
                self.ranges += n_more;
            }
        }
    }

    fn compared(&mut self, value: &Value) {
        self.ranges += usize::from(self.is_range(value));
        self.value(value);
    }

    /// Counts what `value` builds up, and gives its length where it is a text.
    fn value(&mut self, value: &Value) -> Length {
        match value {
            // it stands by itself on one side of a comparison
            Value::Bind(_) | Value::Referenced(_) => Length::default(),
            Value::Field(field) => Length {
                of: self.is_long(*field).then_some((*field, 1)).into_iter().collect(),
                is_cased: false,
            },
            Value::Call { function, arguments } => self.call(*function, arguments),
            Value::Chain { first, rest } => {
                self.value(first);
                rest.iter().for_each(|(_, link)| {
                    self.value(link);
                });
                let is_decimal = self.is_decimal(first) || rest.iter().any(|(_, link)| self.is_decimal(link));
                self.steps += if is_decimal { rest.len() } else { 0 };
                Length::default()
            }
            Value::Negate(inner) => {
                self.value(inner);
                self.steps += usize::from(self.is_decimal(inner));
                Length::default()
            }
            Value::Cast(inner, cast) => {
                let length = self.value(inner);
                match cast {
                    Cast::Text => {
                        // `char(n)` is copied without its blanks.
                        self.add(&length.of, length.factor());
                        length
                    }
                    Cast::Integer | Cast::Utc => Length::default(),
                }
            }
        }
    }

    fn call(&mut self, function: Function, arguments: &[Value]) -> Length {
        let mut length = Length::default();
        for argument in arguments {
            let of = self.value(argument);
            // A function reads a field into a copy; what another function has made is there already. `starts_with` frees what it
            // reads.
            if matches!(argument, Value::Field(_) | Value::Cast(..)) && function != Function::StartsWith {
                self.add(&of.of, 1);
            }
            let left = match function {
                Function::EndsWith | Function::Trim | Function::Concat | Function::Substring => of.factor(),
                Function::ToLower | Function::ToUpper => LONGER,
                _ => 0,
            };
            self.add(&of.of, left);
            length.is_cased |= of.is_cased;
            for (field, n) in of.of {
                *length.of.entry(field).or_default() += n;
            }
        }
        match function {
            Function::ToLower | Function::ToUpper => Length { is_cased: true, ..length },
            Function::Trim | Function::Concat | Function::Substring => length,
            Function::Round | Function::Floor | Function::Ceiling => {
                self.steps += usize::from(arguments.iter().any(|argument| self.is_decimal(argument)));
                Length::default()
            }
            _ => Length::default(),
        }
    }

    /// `text`, `varchar` and `char(n)`; `name` has 63 bytes at most.
    fn is_long(&self, field: usize) -> bool {
        let ty = &self.entity.fields[field].ty;
        ty.kind == TypeKind::Base && [25, 1042, 1043].contains(&ty.base_oid)
    }

    fn is_range(&self, value: &Value) -> bool {
        matches!(value, Value::Field(field) if self.entity.fields[*field].ty.kind == TypeKind::Range)
    }

    /// Recurses no deeper than the parser let terms nest.
    fn is_decimal(&self, value: &Value) -> bool {
        match value {
            Value::Field(field) => self.entity.fields[*field].ty.base_oid == NUMERIC,
            Value::Bind(bind) => bind.oid == NUMERIC,
            Value::Referenced(_) => false,
            Value::Call { function, arguments } => {
                matches!(function, Function::Round | Function::Floor | Function::Ceiling)
                    && arguments.iter().any(|argument| self.is_decimal(argument))
            }
            Value::Chain { first, rest } => {
                self.is_decimal(first) || rest.iter().any(|(_, link)| self.is_decimal(link))
            }
            Value::Negate(inner) | Value::Cast(inner, _) => self.is_decimal(inner),
        }
    }
}

const NUMERIC: u32 = 1700;
