//! One Relationship as it is to be written.

use rowgate_core::nearest::nearest;
use rowgate_crds::{Cardinality, Kind, Relationship, Tenant, admit};
use serde_json::{Value, json};

use super::{SetRelationshipError, SetRelationshipFlags};

/// Fields that were left out are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) from: (String, Vec<String>),
    pub(super) to: (String, Vec<String>),
    pub(super) through: Option<(String, String)>,
    pub(super) cardinality: Cardinality,
    pub(super) assume_unique: bool,
    pub(super) inverse: Option<String>,
}

/// What the flags say.
pub(super) fn of_flags(
    flags: &SetRelationshipFlags,
    from: &str,
    to: &str,
) -> Result<Draft, SetRelationshipError> {
    let (from, to) = (end("--from", from)?, end("--to", to)?);
    let through = flags.through.as_deref().map(table).transpose()?;
    let cardinality = match (flags.cardinality, &through) {
        (Some(cardinality), _) => cardinality.into(),
        (None, Some(_)) => Cardinality::Many,
        (None, None) => Cardinality::One,
    };
    let of_field = |_: &Cardinality| name_of(&from.1);
    let derived = Some(&cardinality).filter(|it| **it == Cardinality::One).and_then(of_field);
    let name = flags.name.clone().or(derived).unwrap_or_else(|| to.0.clone());
    let (assume_unique, inverse) = (flags.assume_unique, flags.inverse.clone());
    Ok(Draft { name, from, to, through, cardinality, assume_unique, inverse })
}

/// `customer`, of the one field `customer_id` or `customerId`.
pub(super) fn name_of(fields: &[String]) -> Option<String> {
    let [field] = fields else { return None };
    let name = field.strip_suffix("_id").or_else(|| field.strip_suffix("Id"))?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// `orders`, or `orders.id` with its fields.
fn end(flag: &str, text: &str) -> Result<(String, Vec<String>), SetRelationshipError> {
    let (entity, fields) = match text.split_once('.') {
        Some((entity, fields)) => (entity, fields.split(',').map(|it| it.trim().to_owned()).collect()),
        None => (text, Vec::new()),
    };
    if entity.is_empty() || fields.iter().any(String::is_empty) {
        return Err(SetRelationshipError::Mistakes(format!(
            "{flag}: {text:?} is not an entity with its fields; give them as orders.customer_id, several fields as lines.order_id,line_no"
        )));
    }
    Ok((entity.to_owned(), fields))
}

fn table(text: &str) -> Result<(String, String), SetRelationshipError> {
    match text.split_once('.') {
        Some((schema, table)) if !schema.is_empty() && !table.is_empty() => {
            Ok((schema.to_owned(), table.to_owned()))
        }
        _ => Err(SetRelationshipError::Mistakes(format!(
            "--through: {text:?} is not a table with its schema; give both as app.order_tags"
        ))),
    }
}

impl Draft {
    /// `metadata.name`: that of the entity where it starts, and its own.
    pub(super) fn object_name(&self) -> String {
        let name = format!("{}-{}", self.from.0, self.name).to_lowercase().replace('_', "-");
        name.trim_matches('-').to_owned()
    }

    /// The manifest, as the API server would admit it.
    pub(super) fn manifest(
        &self,
        tenant: &str,
        known: Option<&Tenant>,
        others: &[&Relationship],
    ) -> Result<Value, SetRelationshipError> {
        let mut mistakes: Vec<String> = Vec::new();
        for (flag, (entity, _)) in [("--from", &self.from), ("--to", &self.to)] {
            mistakes.extend(known.and_then(|known| missing(flag, entity, known)));
        }
        let taken = others.iter().find(|it| it.spec.from.entity == self.from.0 && it.spec.name == self.name);
        mistakes.extend(taken.map(|other| {
            format!(
                "{} has a relationship {} already, by the Relationship {}; choose another --name, or edit that one",
                self.from.0,
                self.name,
                other.metadata.name.as_deref().unwrap_or_default()
            )
        }));
        let manifest = self.as_json(tenant, known.and_then(|known| known.metadata.namespace.as_deref()));
        if let Err(errors) = admit(Kind::Relationship, manifest.clone(), None) {
            mistakes.extend(errors.iter().map(ToString::to_string));
        }
        match mistakes.is_empty() {
            true => Ok(manifest),
            false => Err(SetRelationshipError::Mistakes(mistakes.join("\n"))),
        }
    }

    fn as_json(&self, tenant: &str, namespace: Option<&str>) -> Value {
        let end = |(entity, fields): &(String, Vec<String>)| match fields.is_empty() {
            true => json!({"entity": entity}),
            false => json!({"entity": entity, "fields": fields}),
        };
        let mut metadata = json!({"name": self.object_name()});
        if let Some(namespace) = namespace.filter(|namespace| *namespace != "default") {
            metadata["namespace"] = json!(namespace);
        }
        let mut spec = json!({
            "tenantRef": {"name": tenant},
            "name": self.name,
            "from": end(&self.from),
            "to": end(&self.to),
            "cardinality": self.cardinality,
        });
        if let Some((schema, object)) = &self.through {
            spec["through"] = json!({"schema": schema, "object": object});
        }
        if self.assume_unique {
            spec["assumeUnique"] = json!(true);
        }
        if let Some(inverse) = &self.inverse {
            spec["inverse"] = json!(inverse);
        }
        json!({"apiVersion": "rowgate.dev/v1alpha1", "kind": "Relationship", "metadata": metadata, "spec": spec})
    }
}

/// That the Tenant does not declare an entity.
fn missing(flag: &str, entity: &str, tenant: &Tenant) -> Option<String> {
    let names: Vec<&str> = tenant.spec.entities.iter().map(|it| it.name.as_str()).collect();
    if names.contains(&entity) {
        return None;
    }
    let hint = match nearest(entity, names.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it has {}", names.join(", ")),
    };
    Some(format!("{flag}: the Tenant {} has no entity {entity}; {hint}", tenant.slug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(from: &str, to: &str) -> Result<Draft, SetRelationshipError> {
        let end = |flag, text| end(flag, text);
        let (from, to) = (end("--from", from)?, end("--to", to)?);
        let name = name_of(&from.1).unwrap_or_else(|| to.0.clone());
        let cardinality = Cardinality::One;
        Ok(Draft { name, from, to, through: None, cardinality, assume_unique: false, inverse: None })
    }

    #[test]
    fn a_name_is_that_of_the_field_or_of_the_entity() {
        for (from, name, object) in [
            ("orders.customer_id", "customer", "orders-customer"),
            ("Order_Lines.customerId", "customer", "order-lines-customer"),
            ("orders.owner", "customers", "orders-customers"),
            ("orders", "customers", "orders-customers"),
        ] {
            let draft = draft(from, "customers").expect("an entity");
            assert_eq!((draft.name.as_str(), draft.object_name().as_str()), (name, object), "{from}");
        }
    }

    #[test]
    fn what_the_api_server_would_refuse_is_refused() {
        for (from, to, says) in [
            ("orders.customer_id", "customers", "give from.fields and to.fields both"),
            ("orders.a,b", "customers.id", "equally many fields"),
            (".id", "customers.id", "--from: \".id\" is not an entity"),
            ("orders.", "customers.id", "--from: \"orders.\" is not an entity"),
        ] {
            let made = draft(from, to).and_then(|draft| draft.manifest("shop", None, &[]));
            let error = made.expect_err("a mistake").to_string();
            assert!(error.contains(says), "{from} {to}: {error}");
        }
        assert!(table("order_tags").is_err() && table("app.order_tags").is_ok());
    }
}
