//! Which of the values of a write PostgreSQL does not take, asked once it has refused the write and named no column.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Entity, Field, TypeKind};
use crate::compile::CompiledWrite;
use crate::shape::{Column, Encoding, Shape, label};
use crate::text::{Bind, Format, Sql, quoted};

/// `text[]`
const TEXT_ARRAY: u32 = 1009;
/// Types below came with PostgreSQL.
const FIRST_OWN: u32 = 16_384;
/// As many values as one answer names.
const MAX_DIAGNOSES: u64 = 8;

/// The question about those values of a write that may not fit.
#[derive(Debug, Clone)]
pub struct ValueProbe {
    /// Gives a [`ValueDiagnosis`] for each row.
    pub sql: Sql,
    pub shape: Arc<Shape>,
    entity: Arc<Entity>,
    /// Field and row of each, in the order of the question.
    values: Vec<(u16, Option<u16>)>,
}

/// A value that does not fit, as PostgreSQL says.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct ValueDiagnosis {
    /// Its place in the question, from 1.
    n: usize,
    pub(crate) code: String,
}

impl CompiledWrite {
    /// Every value beside the type of its column, as one statement. `None`: PostgreSQL has read each as what it is stored as,
    /// since no column has a modifier or a type of the tenant's own.
    #[must_use]
    pub fn value_probe(&self) -> Option<ValueProbe> {
        let mut values = BTreeMap::new();
        for bind in self.sql.binds() {
            let Some(at) = bind.field else { continue };
            let field = self.entity.fields.get(usize::from(at)).filter(|field| may_be_refused(field, bind));
            if let Some((field, text)) = field.zip(text(bind)) {
                // by fields, so that PostgreSQL looks each type up once
                values.insert((at, bind.row), (text, field.ty.name.as_str()));
            }
        }
        if values.is_empty() {
            return None;
        }
        let (texts, types) = (values.values().map(|(text, _)| text.as_str()), values.values().map(|it| it.1));
        let mut sql = Sql::new();
        sql.lit("select u.n, i.sql_error_code from rows from (pg_catalog.unnest(").bind(array(texts));
        sql.lit("), pg_catalog.unnest(").bind(array(types)).lit(
            ")) with ordinality u (value, type, n) cross join lateral pg_catalog.pg_input_error_info(u.value, u.type) i \
             where i.sql_error_code is not null limit ",
        );
        sql.number(MAX_DIAGNOSES);
        let column = |name: &str, encoding| Column { label: Some(label(name)), encoding };
        let columns = vec![column("n", Encoding::Int8), column("code", Encoding::Text)];
        let shape = Arc::new(Shape { columns, position: Vec::new(), count: None });
        Some(ValueProbe {
            sql,
            shape,
            entity: Arc::clone(&self.entity),
            values: values.into_keys().collect(),
        })
    }
}

impl ValueProbe {
    /// The field, its position and the row of a list that a diagnosis is about.
    #[must_use]
    pub(crate) fn of(&self, diagnosis: &ValueDiagnosis) -> Option<(&Field, usize, Option<u16>)> {
        let (at, row) = *self.values.get(diagnosis.n.checked_sub(1)?)?;
        let at = usize::from(at);
        Some((self.entity.fields.get(at)?, at, row))
    }
}

/// PostgreSQL has read the value without the modifier of its column, or as what stands below a domain.
fn may_be_refused(field: &Field, bind: &Bind) -> bool {
    let ty = &field.ty;
    let is_enum = ty.kind == TypeKind::Enum && ty.oid == ty.base_oid;
    // of a version that is named there is a list
    bind.oid == ty.base_oid && (field.rounds_to.is_some() || FIRST_OWN <= ty.oid && !is_enum)
}

/// As the type's own reader takes it. `None` for NULL.
fn text(bind: &Bind) -> Option<String> {
    let value = bind.value.as_ref()?;
    match bind.format {
        Format::Text => String::from_utf8(value.clone()).ok(),
        // of all values that are sent only bytes are
        Format::Binary => {
            Some(value.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}")))
        }
    }
}

fn array<'a>(items: impl Iterator<Item = &'a str>) -> Bind {
    let mut text = "{".to_owned();
    for (i, item) in items.enumerate() {
        text.push_str(if i == 0 { "" } else { "," });
        quoted(item, '\\', &mut text);
    }
    text.push('}');
    Bind::text(TEXT_ARRAY, text)
}
