//! Which functions and procedures can be called, and why the others cannot.

use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Routine, TenantDb};
use rowgate_pg::introspect::declared::{DeclaredType, Obstacle};
use rowgate_sql::catalog::{EntityRecord, FieldType, Operators, TypeKind};

use super::{Accepted, Finding, On, qname};
use crate::desired::EntitySpec;

pub(super) fn one<'a>(spec: &'a EntitySpec, db: &'a TenantDb, owner: &str) -> Result<Accepted<'a>, Finding> {
    let (signature, routine) = only(spec, db)?;
    let unsupported = |message: String| Finding::new(Reason::SourceUnsupported, message);
    if routine.owner != owner {
        let message =
            format!("{signature} belongs to {}; alter routine {signature} owner to {owner}", routine.owner);
        return Err(Finding::new(Reason::NotOwned, message));
    }
    let declared = &routine.declared;
    if declared.definer && !spec.allow_definer {
        return Err(unsupported(format!(
            "{signature} is SECURITY DEFINER, so it runs with the rights of its owner instead of its caller; alter routine {signature} security invoker, or set allowDefiner: true"
        )));
    }
    if declared.definer && !declared.settled {
        return Err(unsupported(format!(
            "{signature} is SECURITY DEFINER without its own search_path, so its caller decides what its unqualified names refer to; alter routine {signature} set search_path = pg_catalog, pg_temp, and qualify names in it"
        )));
    }
    let callable =
        declared.callable(&plain).map_err(|obstacle| unsupported(sentence(signature, &obstacle)))?;
    let names = callable.params.iter().map(|param| param.argument.as_str());
    let outputs = callable.returns.outputs().iter().map(|output| output.column.as_str());
    let names: Vec<&str> = names.chain(outputs).collect();
    if let Some(missing) = spec.mappings.keys().find(|name| !names.contains(&name.as_str())) {
        let message = format!(
            "mappings names {missing}, which is neither a parameter of {signature} nor a column of its result; correct mappings"
        );
        return Err(Finding::new(Reason::FieldNotFound, message));
    }
    if callable.exposed(&spec.mappings).is_none() {
        let message = format!(
            "two parameters, or two columns of the result, of {signature} are exposed under one name; change mappings"
        );
        return Err(Finding::new(Reason::InvalidSpec, message));
    }
    let record = EntityRecord {
        name: spec.name.clone(),
        kind: spec.kind,
        schema: spec.schema.clone(),
        object: spec.object.clone(),
        key_columns: Vec::new(),
        mappings: spec.mappings.clone(),
        rest: spec.rest,
        graphql: spec.graphql.clone(),
        protection: None,
        hide_soft_deleted: None,
        shows_version: false,
        events: false,
        allow_definer: spec.allow_definer,
    };
    Ok(Accepted { spec, on: On::Routine(signature, routine), record, is_leaving: false })
}

/// The one routine of that name.
fn only<'a>(spec: &EntitySpec, db: &'a TenantDb) -> Result<(&'a str, &'a Routine), Finding> {
    let name = qname(spec);
    let (schema, object) = &name;
    let is_named = |it: &Routine| it.declared.schema == *schema && it.declared.name == *object;
    let mut named = db.routines.iter().filter(|(_, routine)| is_named(routine) && schema != "dl");
    let of_extension = db.extension_routines.contains(&name);
    match (named.next(), named.next(), of_extension) {
        (Some((signature, routine)), None, false) => Ok((signature, routine)),
        (Some((one, _)), Some((other, _)), _) => Err(Finding::new(
            Reason::SourceUnsupported,
            format!(
                "{schema}.{object} is overloaded ({one} and {other}), so a call is ambiguous; rename or drop one"
            ),
        )),
        (Some((one, _)), None, true) => Err(Finding::new(
            Reason::SourceUnsupported,
            format!(
                "{one} has the same name as a function of an extension, so a call of {schema}.{object} is ambiguous; rename yours"
            ),
        )),
        (None, _, true) => Err(Finding::new(
            Reason::SourceUnsupported,
            format!("{schema}.{object} belongs to an extension; expose a function of your own that calls it"),
        )),
        (None, _, false) => Err(Finding::new(
            Reason::SourceNotFound,
            format!(
                "function or procedure {schema}.{object} does not exist; create it (spec.database.bootstrap) or correct source"
            ),
        )),
    }
}

/// What cannot be called, and what to do about it.
fn sentence(signature: &str, obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Aggregate => {
            format!(
                "{signature} is an aggregate, which cannot be called by itself; expose a function that selects it"
            )
        }
        Obstacle::Window => {
            format!(
                "{signature} is a window function, which cannot be called by itself; expose a function that selects it"
            )
        }
        Obstacle::Trigger => {
            format!(
                "{signature} is a trigger function, which only triggers can call; expose another function"
            )
        }
        Obstacle::Variadic => format!(
            "{signature} is VARIADIC, and requests name each parameter once; declare an array parameter instead"
        ),
        Obstacle::Language(language) => format!(
            "{signature} is written in {language}, which roles and policies do not confine; write it in a trusted language such as sql or plpgsql"
        ),
        Obstacle::Unnamed(number) => format!(
            "parameter {number} of {signature} has no name, and requests name their parameters; recreate it with named parameters"
        ),
        Obstacle::Parameter(name, ty) => format!(
            "parameter {name} of {signature} is of type {ty}, which a request cannot express; declare it with a concrete type"
        ),
        Obstacle::Result(ty) => {
            format!("{signature} returns {ty}, which a response cannot contain; return another type")
        }
        Obstacle::Record => format!(
            "{signature} returns record without naming its columns; declare returns table (...) or OUT parameters"
        ),
    }
}

/// Names and types are enough to judge a routine.
fn plain(ty: &DeclaredType) -> FieldType {
    FieldType {
        oid: ty.oid,
        name: ty.name.clone(),
        kind: TypeKind::Other,
        base_oid: ty.base_oid,
        operators: Operators::Nowhere,
        nested: None,
    }
}
