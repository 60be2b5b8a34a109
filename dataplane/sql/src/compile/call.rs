//! A call of a routine, with its parameters by name.

use std::sync::Arc;

use super::encoding;
use crate::catalog::{Entity, Output, Returns, RoutineKind};
use crate::query::Call;
use crate::shape::{Column, Shape, label};
use crate::text::Sql;

/// A call: what it gives, if anything is wanted of it.
#[derive(Debug, Clone)]
pub struct CompiledCall {
    pub sql: Sql,
    pub shape: Arc<Shape>,
    pub entity: Arc<Entity>,
    /// False: rows that it gives are read and not shown.
    pub keeps_rows: bool,
}

/// One statement for a call session. What a function gives is listed by name: a column that comes later is not shown before the
/// catalog knows it.
#[must_use]
pub fn call(call: &Call) -> CompiledCall {
    let entity = &*call.entity;
    let routine = entity.routine.as_ref().expect("only a routine is called");
    let outputs = routine.returns.outputs();
    let mut sql = Sql::new();
    match routine.kind {
        RoutineKind::Procedure => {
            sql.lit("call ");
        }
        RoutineKind::Function => {
            sql.lit("select");
            for (i, output) in outputs.iter().enumerate() {
                sql.lit(if i == 0 { " " } else { ", " }).ident(&entity.object).lit(".").ident(&output.column);
            }
            sql.lit(" from ");
        }
    }
    sql.ident(&entity.schema).lit(".").ident(&entity.object).lit("(");
    for (i, argument) in call.arguments.iter().enumerate() {
        let param = &routine.params[argument.param];
        sql.lit(if i == 0 { "" } else { ", " }).ident(&param.argument).lit(" => ");
        match &argument.value {
            Some(bind) => sql.bind(bind.clone()),
            None => sql.lit("null"),
        };
    }
    sql.lit(")");
    let show =
        |output: &Output| Column { label: Some(label(&output.name)), encoding: encoding::of(&output.ty) };
    let columns = outputs.iter().map(show).collect();
    let keeps_rows = call.keeps_rows && routine.returns != Returns::Nothing;
    let shape = Shape { columns, position: Vec::new(), count: None };
    CompiledCall { sql, shape: Arc::new(shape), entity: Arc::clone(&call.entity), keeps_rows }
}
