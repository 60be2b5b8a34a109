//! Queries that name what the key may not use.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use super::generate::Generator;
use super::{Condition, Document, Root};
use crate::graphql::random::world::drawn::Key;
use crate::graphql::random::world::tables::{Field, RELATIONSHIPS, Relationship, TABLES, names};

/// Where in a document a name may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::graphql::random) enum Spot {
    Member,
    Filter,
    Order,
    GroupBy,
    Aggregate,
    Root,
    Mutation,
}

pub(in crate::graphql::random) const SPOTS: [Spot; 7] =
    [Spot::Member, Spot::Filter, Spot::Order, Spot::GroupBy, Spot::Aggregate, Spot::Root, Spot::Mutation];

#[derive(Debug, Clone, Copy)]
pub(in crate::graphql::random) enum Intruder {
    Field(&'static Field),
    Relationship(&'static Relationship),
    /// The name of a type, or what a root field begins with.
    Name(&'static str),
}

impl Intruder {
    pub(in crate::graphql::random) fn word(self) -> &'static str {
        match self {
            Intruder::Field(field) => field.name,
            Intruder::Relationship(it) => it.name,
            Intruder::Name(name) => name,
        }
    }

    pub(super) fn field(self) -> &'static Field {
        match self {
            Intruder::Field(field) => field,
            _ => unreachable!("only fields were asked for"),
        }
    }

    pub(super) fn selection(self) -> String {
        match self {
            Intruder::Field(field) => field.name.to_owned(),
            Intruder::Relationship(it) => format!("{} {{ __typename }}", it.name),
            Intruder::Name(name) => format!("... on {name} {{ __typename }}"),
        }
    }
}

impl Generator<'_> {
    /// What the key may not use of the table, where it is to stand at this spot; once in a document.
    pub(super) fn intruder(&mut self, spot: Spot, table: usize) -> Option<Intruder> {
        if self.spot != Some(spot) || self.intruder.is_some() || self.rng.random_bool(0.3) {
            return None;
        }
        let fields =
            TABLES[table].fields.iter().filter(|field| !self.rights.reads[table].contains(field.name));
        let mut hidden: Vec<Intruder> = fields.map(Intruder::Field).collect();
        if matches!(spot, Spot::Member | Spot::Filter) {
            let of_table = RELATIONSHIPS.iter().filter(|it| it.from == table);
            hidden.extend(of_table.filter(|it| !self.rights.follows(it)).map(Intruder::Relationship));
        }
        self.intruder = hidden.choose(&mut self.rng).copied();
        self.intruder
    }

    pub(super) fn hidden_condition(&mut self, table: usize, intruder: Intruder) -> Option<Condition> {
        match intruder {
            Intruder::Field(field) => Some(self.of_field(table, field)),
            Intruder::Relationship(it) => Some(Condition::Related(it, Vec::new())),
            Intruder::Name(_) => None,
        }
    }

    /// A document with one name that the key may not use, and that name; `None`: it may use everything there.
    pub(in crate::graphql::random) fn intruding(
        &mut self,
        key: &Key,
        spot: Spot,
    ) -> Option<(Document, &'static str)> {
        self.spot = Some(spot);
        let mut document = self.document();
        match spot {
            Spot::Root => {
                let text = self.hidden_root()?;
                let at = self.rng.random_range(0..=document.roots.len());
                document.roots.insert(at, Root::Raw(text));
            }
            Spot::Mutation => document = self.hidden_mutation(key)?,
            _ => {}
        }
        self.intruder.map(|intruder| (document, intruder.word()))
    }

    fn hidden_root(&mut self) -> Option<String> {
        let hidden: Vec<usize> = (0..TABLES.len()).filter(|at| self.rights.reads[*at].is_empty()).collect();
        let table = &TABLES[*hidden.choose(&mut self.rng)?];
        let (word, text) = match self.rng.random_range(0..4) {
            0 => (table.root(), format!("{} {{ totalCount }}", table.root())),
            1 => (table.singular(), format!("{}_by_pk(id: 1) {{ __typename }}", table.singular())),
            2 => (table.singular(), format!("__type(name: \"{}\") {{ name kind }}", table.singular())),
            _ => (table.singular(), format!("... on {}Connection {{ totalCount }}", table.singular())),
        };
        self.intruder = Some(Intruder::Name(word));
        Some(text)
    }

    fn hidden_mutation(&mut self, key: &Key) -> Option<Document> {
        let may = |table: usize| {
            let permissions = self.drawn.permissions(key).iter();
            let mut of_table = permissions.filter(|it| it.table == table);
            of_table.any(|it| it.actions.contains(&"delete"))
        };
        let hidden: Vec<usize> = (0..TABLES.len()).filter(|at| !may(*at)).collect();
        let ty = TABLES[*hidden.choose(&mut self.rng)?].ty();
        // the whole name is what is absent: its type may be there for reads
        let word: &'static str = DELETES.iter().find(|word| word[6..] == ty)?;
        self.intruder = Some(Intruder::Name(word));
        let text = format!("{word}(id: 1) {{ __typename }}");
        Some(Document { is_mutation: true, roots: vec![Root::Raw(text)] })
    }
}

const DELETES: [&str; 8] = [
    "deleteWharves",
    "deleteSailors",
    "deleteVoyages",
    "deleteCrates",
    "deleteBend",
    "deleteMasteries",
    "deleteLanterns",
    "deleteLedgers",
];

/// A name of as many letters that nothing has.
pub(in crate::graphql::random) fn absent(rng: &mut StdRng, name: &str) -> String {
    loop {
        let letters = name.chars().map(|c| match c {
            '_' => '_',
            'A'..='Z' => char::from(rng.random_range(b'A'..=b'Z')),
            _ => char::from(rng.random_range(b'a'..=b'z')),
        });
        let made: String = letters.collect();
        let parts = ["delete", "create", "zq"];
        if !names().contains(&made.as_str()) && !parts.iter().any(|part| made.contains(part)) {
            return made;
        }
    }
}
