//! The tables and relationships of the test's tenant: what is the same for each seed. No name of it is a part of another one, so
//! that a name that stands in an answer is found by looking for its letters.

/// The type of a column, as far as GraphQL, REST and the test's own arithmetic differ by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Int,
    Long,
    Decimal,
    Bool,
    Text,
    Mood,
    Uuid,
    Instant,
    Date,
    Json,
    Texts,
}

/// A column, under the name that callers see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) ty: Type,
    pub(crate) is_null_at_times: bool,
}

#[derive(Debug)]
pub(crate) struct Table {
    /// The entity's name.
    pub(crate) entity: &'static str,
    /// `graphql.singular` and `graphql.plural`.
    pub(crate) renamed: Option<(&'static str, &'static str)>,
    pub(crate) in_graphql: bool,
    pub(crate) fields: &'static [Field],
    /// Names of the fields that name a row.
    pub(crate) key: &'static [&'static str],
}

/// From rows of one table to rows of another, in one direction.
#[derive(Debug)]
pub(crate) struct Relationship {
    pub(crate) name: &'static str,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Fields that are equal, of `from` and of `to`; with `through` each is compared with one of the table between.
    pub(crate) pairs: &'static [(&'static str, &'static str)],
    pub(crate) to_one: bool,
    /// The table between: its fields that equal those of `from`, and those that equal the ones of `to`.
    pub(crate) through: Option<(&'static [&'static str], &'static [&'static str])>,
}

impl Table {
    pub(crate) fn field(&self, name: &str) -> &'static Field {
        self.fields.iter().find(|field| field.name == name).expect("a field of the table")
    }

    /// What types of rows are called, and what precedes `_by_pk`.
    pub(crate) fn singular(&self) -> &'static str {
        self.renamed.map_or(self.entity, |(singular, _)| singular)
    }

    /// The field of `Query` with its list.
    pub(crate) fn root(&self) -> &'static str {
        self.renamed.map_or(self.entity, |(_, plural)| plural)
    }

    pub(crate) fn ty(&self) -> String {
        let name = self.singular();
        match self.renamed {
            Some(_) => name.to_owned(),
            None => name[..1].to_uppercase() + &name[1..],
        }
    }

    /// The name in the database: every other field is exposed under another one.
    pub(crate) fn column(&self, name: &str) -> String {
        let at = self.fields.iter().position(|field| field.name == name).expect("a field of the table");
        if at % 2 == 1 { format!("zz_{name}") } else { name.to_owned() }
    }

    pub(crate) fn object(&self) -> String {
        format!("zz_{}", self.entity.to_lowercase())
    }

    /// The field that policies compare with the claim.
    pub(crate) fn zone(&self) -> &'static str {
        self.fields.iter().find(|field| field.name.ends_with("zone")).expect("in each table").name
    }
}

const fn field(name: &'static str, ty: Type) -> Field {
    Field { name, ty, is_null_at_times: false }
}

const fn maybe(name: &'static str, ty: Type) -> Field {
    Field { name, ty, is_null_at_times: true }
}

use Type::{Bool, Date, Decimal, Instant, Int, Json, Long, Mood, Text, Texts, Uuid};

pub(crate) const WHARVES: usize = 0;
pub(crate) const SAILORS: usize = 1;
pub(crate) const VOYAGES: usize = 2;
pub(crate) const CRATES: usize = 3;
pub(crate) const KNOTS: usize = 4;
pub(crate) const MASTERIES: usize = 5;
pub(crate) const LANTERNS: usize = 6;
pub(crate) const LEDGERS: usize = 7;

pub(crate) static TABLES: [Table; 8] = [
    Table {
        entity: "Wharves",
        renamed: None,
        in_graphql: true,
        key: &["wharf_code"],
        fields: &[
            field("wharf_code", Text),
            field("wharf_zone", Text),
            maybe("wharf_title", Text),
            field("wharf_note", Text),
            field("wharf_serial", Long),
            maybe("wharf_since", Date),
            maybe("wharf_busy", Bool),
            maybe("wharf_tags", Texts),
        ],
    },
    Table {
        entity: "Sailors",
        renamed: None,
        in_graphql: true,
        key: &["sailor_id"],
        fields: &[
            field("sailor_id", Long),
            field("sailor_zone", Text),
            maybe("sailor_boss", Long),
            maybe("sailor_port", Text),
            maybe("sailor_grade", Int),
            maybe("sailor_mood", Mood),
            maybe("sailor_rate", Decimal),
            field("sailor_uid", Uuid),
            maybe("sailor_born", Date),
            maybe("sailor_word", Text),
            field("sailor_note", Text),
            field("sailor_serial", Long),
        ],
    },
    Table {
        entity: "voyages",
        renamed: None,
        in_graphql: true,
        key: &["voyage_of", "voyage_leg"],
        fields: &[
            field("voyage_of", Long),
            field("voyage_leg", Int),
            field("voyage_zone", Text),
            maybe("voyage_word", Text),
            maybe("voyage_due", Instant),
            maybe("voyage_cost", Decimal),
            field("voyage_done", Bool),
            maybe("voyage_doc", Json),
            field("voyage_note", Text),
            field("voyage_serial", Long),
        ],
    },
    Table {
        entity: "Crates",
        renamed: None,
        in_graphql: true,
        key: &["crate_id"],
        fields: &[
            field("crate_id", Int),
            maybe("crate_trip_of", Long),
            maybe("crate_trip_leg", Int),
            maybe("crate_owner", Long),
            field("crate_zone", Text),
            maybe("crate_weight", Decimal),
            maybe("crate_count", Int),
            maybe("crate_mood", Mood),
            field("crate_note", Text),
            field("crate_serial", Long),
        ],
    },
    Table {
        entity: "Knots",
        renamed: Some(("Bend", "everyKnotting")),
        in_graphql: true,
        key: &["knot_id"],
        fields: &[
            field("knot_id", Uuid),
            field("knot_zone", Text),
            maybe("knot_word", Text),
            maybe("knot_level", Int),
            field("knot_note", Text),
            field("knot_serial", Long),
        ],
    },
    Table {
        entity: "Masteries",
        renamed: None,
        in_graphql: true,
        key: &["mastery_of", "mastery_knot"],
        fields: &[
            field("mastery_of", Long),
            field("mastery_knot", Uuid),
            field("mastery_zone", Text),
            maybe("mastery_years", Int),
            field("mastery_note", Text),
            field("mastery_serial", Long),
        ],
    },
    Table {
        entity: "Lanterns",
        renamed: None,
        in_graphql: true,
        key: &["lantern_id"],
        fields: &[
            field("lantern_id", Int),
            field("lantern_owner", Long),
            field("lantern_zone", Text),
            maybe("lantern_oil", Decimal),
            field("lantern_note", Text),
            field("lantern_serial", Long),
        ],
    },
    Table {
        entity: "Ledgers",
        renamed: None,
        in_graphql: false,
        key: &["ledger_id"],
        fields: &[
            field("ledger_id", Int),
            field("ledger_owner", Long),
            field("ledger_zone", Text),
            field("ledger_note", Text),
            field("ledger_serial", Long),
        ],
    },
];

/// A Relationship of the manifest gives the one with its name and, behind it, the one with the name of its inverse.
pub(crate) static RELATIONSHIPS: [Relationship; 17] = [
    one("itsChief", SAILORS, SAILORS, &[("sailor_boss", "sailor_id")]),
    many("itsCrew", SAILORS, SAILORS, &[("sailor_id", "sailor_boss")]),
    one("itsWharf", SAILORS, WHARVES, &[("sailor_port", "wharf_code")]),
    many("itsMen", WHARVES, SAILORS, &[("wharf_code", "sailor_port")]),
    one("itsCaptain", VOYAGES, SAILORS, &[("voyage_of", "sailor_id")]),
    many("itsRoutes", SAILORS, VOYAGES, &[("sailor_id", "voyage_of")]),
    one("itsTrip", CRATES, VOYAGES, &[("crate_trip_of", "voyage_of"), ("crate_trip_leg", "voyage_leg")]),
    many("itsCargo", VOYAGES, CRATES, &[("voyage_of", "crate_trip_of"), ("voyage_leg", "crate_trip_leg")]),
    one("itsOwner", CRATES, SAILORS, &[("crate_owner", "sailor_id")]),
    many("itsChests", SAILORS, CRATES, &[("sailor_id", "crate_owner")]),
    through("itsHitches", SAILORS, KNOTS, &[("sailor_id", "knot_id")], (&["mastery_of"], &["mastery_knot"])),
    through("itsMasters", KNOTS, SAILORS, &[("knot_id", "sailor_id")], (&["mastery_knot"], &["mastery_of"])),
    one("itsHolder", LANTERNS, SAILORS, &[("lantern_owner", "sailor_id")]),
    one("itsLamp", SAILORS, LANTERNS, &[("sailor_id", "lantern_owner")]),
    // several match, and the first by key is taken
    one("itsForeman", WHARVES, SAILORS, &[("wharf_code", "sailor_port")]),
    one("itsAccountant", LEDGERS, SAILORS, &[("ledger_owner", "sailor_id")]),
    many("itsBooks", SAILORS, LEDGERS, &[("sailor_id", "ledger_owner")]),
];

/// The one that `assumeUnique` makes; it has no way back.
pub(crate) const FOREMAN: &str = "itsForeman";

type Pairs = &'static [(&'static str, &'static str)];

const fn one(name: &'static str, from: usize, to: usize, pairs: Pairs) -> Relationship {
    Relationship { name, from, to, pairs, to_one: true, through: None }
}

const fn many(name: &'static str, from: usize, to: usize, pairs: Pairs) -> Relationship {
    Relationship { name, from, to, pairs, to_one: false, through: None }
}

const fn through(
    name: &'static str,
    from: usize,
    to: usize,
    pairs: Pairs,
    between: (&'static [&'static str], &'static [&'static str]),
) -> Relationship {
    Relationship { name, from, to, pairs, to_one: false, through: Some(between) }
}

/// Every name that an answer may hold, or may not.
pub(crate) fn names() -> Vec<&'static str> {
    let of = |table: &'static Table| {
        let entity = match table.renamed {
            Some((singular, plural)) => vec![table.entity, singular, plural],
            None => vec![table.entity],
        };
        entity.into_iter().chain(table.fields.iter().map(|field| field.name))
    };
    TABLES.iter().flat_map(of).chain(RELATIONSHIPS.iter().map(|it| it.name)).collect()
}

#[test]
fn no_name_is_a_part_of_another_one() {
    let names: Vec<String> = names().iter().map(|name| name.to_lowercase()).collect();
    for (i, name) in names.iter().enumerate() {
        let longer = names.iter().enumerate().find(|(j, other)| *j != i && other.contains(name.as_str()));
        assert!(longer.is_none(), "{name}: {longer:?}");
    }
}
