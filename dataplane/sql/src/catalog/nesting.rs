//! What arrays and composites are made of, from the rows of `pg_type`.

use std::collections::HashMap;
use std::sync::Arc;

use super::TypeKind;
use crate::shape::{Attribute, Body, Encoding, Nested, Part, label};
use crate::text::Format;

/// How deep arrays and composites may lie within each other and be shown by their parts. What nests deeper is shown as
/// PostgreSQL prints it, so that no owner's type makes a reader of values recurse without end.
pub const MAX_NESTING: usize = 16;

/// One row of `pg_type`, as far as it says how values look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeRow {
    pub oid: u32,
    pub kind: TypeKind,
    /// For a domain: what it is made of. Its `kind` says nothing.
    pub domain_over: Option<u32>,
    /// Of an array.
    pub element: u32,
    /// What stands between values of this type in the text form of an array.
    pub delimiter: u8,
    /// Of a composite, in order, dropped ones left out: names and types.
    pub attributes: Vec<(String, u32)>,
}

/// Types by oid, and how those that are made of others are read.
#[derive(Debug)]
pub struct Structures {
    rows: HashMap<u32, TypeRow>,
    nested: HashMap<u32, Arc<Nested>>,
}

impl Structures {
    /// From the rows of every type that the others are made of.
    #[must_use]
    pub fn new(rows: Vec<TypeRow>) -> Structures {
        let rows = rows.into_iter().map(|row| (row.oid, row)).collect();
        let mut all = Structures { rows, nested: HashMap::new() };
        // Level by level: nothing recurses, and nobody waits for what is not told.
        for _ in 0..MAX_NESTING {
            let next: Vec<_> = all.rows.values().filter_map(|row| all.build(row)).collect();
            if next.is_empty() {
                break;
            }
            all.nested.extend(next.into_iter().map(|nested| (nested.oid, Arc::new(nested))));
        }
        all
    }

    /// How values of the type `oid`, which may be a domain, are read by their parts, if they have any.
    #[must_use]
    pub fn nested(&self, oid: u32) -> Option<Arc<Nested>> {
        self.nested.get(&self.below_domains(oid)?.oid).cloned()
    }

    /// The array or composite `row`, once all that it is made of is known.
    fn build(&self, row: &TypeRow) -> Option<Nested> {
        if self.nested.contains_key(&row.oid) || row.domain_over.is_some() {
            return None;
        }
        let body = match row.kind {
            TypeKind::Array => Body::Array {
                element: self.part(row.element)?,
                delimiter: self.rows.get(&row.element)?.delimiter,
            },
            TypeKind::Composite => {
                let attribute = |(name, oid): &(String, u32)| {
                    Some(Attribute { label: label(name), part: self.part(*oid)? })
                };
                Body::Composite(row.attributes.iter().map(attribute).collect::<Option<_>>()?)
            }
            TypeKind::Base | TypeKind::Enum | TypeKind::Range | TypeKind::Other => return None,
        };
        let is_binary = match &body {
            Body::Array { element, .. } => is_binary(element),
            Body::Composite(attributes) => attributes.iter().all(|attribute| is_binary(&attribute.part)),
        };
        let format = if is_binary { Format::Binary } else { Format::Text };
        Some(Nested { oid: row.oid, format, body })
    }

    /// `None`: it is not known, or not yet.
    fn part(&self, oid: u32) -> Option<Part> {
        let base = self.below_domains(oid)?;
        let encoding = match base.kind {
            TypeKind::Array | TypeKind::Composite => {
                Encoding::Nested(Arc::clone(self.nested.get(&base.oid)?))
            }
            kind => Encoding::scalar(kind, base.oid),
        };
        Some(Part { oid, encoding })
    }

    fn below_domains(&self, oid: u32) -> Option<&TypeRow> {
        let mut row = self.rows.get(&oid)?;
        // A chain without end has more links than there are types.
        for _ in 0..self.rows.len() {
            match row.domain_over {
                Some(below) => row = self.rows.get(&below)?,
                None => return Some(row),
            }
        }
        None
    }
}

/// Whether the binary form within another value is one that is read here. That of json is its text.
fn is_binary(part: &Part) -> bool {
    part.encoding == Encoding::Json || part.encoding.format() == Format::Binary
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(oid: u32, kind: TypeKind) -> TypeRow {
        TypeRow { oid, kind, domain_over: None, element: 0, delimiter: b',', attributes: Vec::new() }
    }

    fn array(oid: u32, element: u32) -> TypeRow {
        TypeRow { element, ..row(oid, TypeKind::Array) }
    }

    fn composite(oid: u32, attributes: &[(&str, u32)]) -> TypeRow {
        let attributes = attributes.iter().map(|(name, oid)| ((*name).to_owned(), *oid)).collect();
        TypeRow { attributes, ..row(oid, TypeKind::Composite) }
    }

    fn domain(oid: u32, over: u32) -> TypeRow {
        TypeRow { domain_over: Some(over), ..row(oid, TypeKind::Other) }
    }

    #[test]
    fn arrays_domains_and_composites_are_read_by_their_parts() {
        let structures = Structures::new(vec![
            row(23, TypeKind::Base),
            array(1007, 23),
            row(869, TypeKind::Base),
            domain(20_001, 1007),
            domain(20_002, 20_001),
            composite(20_003, &[("a\"b", 23), ("list", 20_002)]),
            array(20_004, 20_003),
            composite(20_005, &[("ip", 869), ("all", 20_004)]),
            composite(20_006, &[("unknown", 99)]),
        ]);
        let integer = Part { oid: 23, encoding: Encoding::Int4 };
        let list = structures.nested(20_002).expect("a domain over a domain over an array");
        assert_eq!(list.oid, 1007);
        assert_eq!(list.body, Body::Array { element: integer.clone(), delimiter: b',' });
        let pair = structures.nested(20_003).expect("a composite");
        let Body::Composite(attributes) = &pair.body else { panic!("{pair:?}") };
        assert_eq!((&*attributes[0].label, &attributes[0].part), ("\"a\\\"b\":", &integer));
        assert_eq!(attributes[1].part, Part { oid: 20_002, encoding: Encoding::Nested(list) });
        assert_eq!(pair.format, Format::Binary);
        assert_eq!(
            structures.nested(20_005).expect("a composite").format,
            Format::Text,
            "inet is had as text only"
        );
        assert_eq!(structures.nested(20_006), None);
        assert_eq!(structures.nested(23), None);
    }

    #[test]
    fn what_nests_too_deep_or_without_end_has_no_parts() {
        let mut rows = vec![row(23, TypeKind::Base), array(30_000, 23)];
        rows.extend((1..10_000).map(|i| composite(30_000 + i, &[("in", 29_999 + i)])));
        rows.extend([
            domain(50_000, 50_001),
            domain(50_001, 50_000),
            array(50_002, 50_000),
            array(50_003, 50_003),
        ]);
        let structures = Structures::new(rows);
        let deepest = 29_999 + u32::try_from(MAX_NESTING).expect("a small number");
        assert!(structures.nested(deepest).is_some());
        for without in [deepest + 1, 39_999, 50_000, 50_002, 50_003] {
            assert_eq!(structures.nested(without), None, "{without}");
        }
    }
}
