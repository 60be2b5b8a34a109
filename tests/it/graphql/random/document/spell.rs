//! A query as text and variables, with whatever the language offers to say the same: fragments, directives, fields that are
//! named twice, variables with and without defaults.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use serde_json::{Map, Value, json};

use super::input::{self, Input, InputValue};
use super::{Aggregate, Document, GroupPart, Groups, List, Member, Part, Root};
use crate::graphql::random::world::tables::TABLES;

/// A request of GraphQL over HTTP.
#[derive(Debug, Clone)]
pub(in crate::graphql::random) struct Request {
    pub(in crate::graphql::random) text: String,
    pub(in crate::graphql::random) variables: Map<String, Value>,
    pub(in crate::graphql::random) operation: Option<&'static str>,
}

impl Request {
    pub(in crate::graphql::random) fn body(&self) -> String {
        let mut body = json!({"query": self.text});
        if !self.variables.is_empty() {
            body["variables"] = Value::Object(self.variables.clone());
        }
        if let Some(name) = self.operation {
            body["operationName"] = json!(name);
        }
        body.to_string()
    }
}

struct Speller<'r> {
    rng: &'r mut StdRng,
    /// As the operation declares them.
    declared: Vec<String>,
    variables: Map<String, Value>,
    fragments: Vec<String>,
    n_decoys: usize,
}

/// Text of a member, and what is asked of the same member further below.
type Spelt = (String, Option<String>);

pub(in crate::graphql::random) fn spell(rng: &mut StdRng, document: &Document) -> Request {
    let mut speller =
        Speller { rng, declared: Vec::new(), variables: Map::new(), fragments: Vec::new(), n_decoys: 0 };
    let ty = if document.is_mutation { "Mutation" } else { "Query" };
    let members: Vec<Spelt> = document.roots.iter().map(|root| speller.root(root)).collect();
    let set = speller.set(ty, members);
    let Speller { rng, declared, variables, fragments, .. } = speller;
    let keyword = if document.is_mutation { "mutation" } else { "query" };
    let (mut text, mut operation) = match declared.is_empty() {
        true if rng.random_bool(0.5) && !document.is_mutation => (set, None),
        true => (format!("{keyword} {set}"), None),
        false => (format!("{keyword} Asked({}) {set}", declared.join(", ")), None),
    };
    if text.contains(" Asked(") && rng.random_bool(0.2) {
        text.push_str(" query Other { __typename }");
        operation = Some("Asked");
    }
    for fragment in fragments {
        text.push('\n');
        text.push_str(&fragment);
    }
    Request { text, variables, operation }
}

impl Speller<'_> {
    fn root(&mut self, root: &Root) -> Spelt {
        match root {
            Root::Typename(key) => (called(key, "__typename"), None),
            Root::Raw(text) => (text.clone(), None),
            Root::List(list) => self.list(list),
            Root::Row { key, table, id, members } => {
                let of = &TABLES[*table];
                let arguments: Vec<String> = of
                    .key
                    .iter()
                    .zip(id)
                    .map(|(name, value)| {
                        let as_text = self.rng.random_bool(0.3);
                        let constant = input::constant(of.field(name).ty, value, as_text);
                        let required = Input { ty: format!("{}!", constant.ty), ..constant };
                        format!("{name}: {}", self.value(&required))
                    })
                    .collect();
                let name = format!("{}_by_pk", of.singular());
                let head = format!("{}({})", called(key, &name), arguments.join(", "));
                self.object(&head, &of.ty(), members, Speller::member)
            }
        }
    }

    fn member(&mut self, member: &Member) -> Spelt {
        match member {
            Member::Typename(key) => (called(key, "__typename"), None),
            Member::Raw(text) => (text.clone(), None),
            Member::Value { key, field } => (called(key, field.name), None),
            Member::Many(list) => self.list(list),
            Member::One { key, relationship, members } => {
                let ty = TABLES[relationship.to].ty();
                self.object(&called(key, relationship.name), &ty, members, Speller::member)
            }
        }
    }

    fn list(&mut self, list: &List) -> Spelt {
        let ty = TABLES[list.table].ty();
        let mut arguments = Vec::new();
        match list.first {
            Some(first) => arguments.push(("first", Input::new("Int", InputValue::Json(json!(first))))),
            None if self.rng.random_bool(0.1) => {
                arguments.push(("first", Input::new("Int", InputValue::Json(Value::Null))));
            }
            None => {}
        }
        if let Some(after) = &list.after {
            arguments.push(("after", Input::new("String", InputValue::Json(json!(after.cursor)))));
        }
        if let Some(conditions) = &list.filter {
            // the same on the next page: a cursor fits the filter as it was written
            let as_text = list.number.is_multiple_of(3);
            arguments.push(("filter", input::filter(list.table, conditions, as_text)));
        }
        if !list.order.is_empty() {
            let term = |(name, descending): &(&str, bool)| {
                let direction = if *descending { "DESC" } else { "ASC" };
                ((*name).to_owned(), Input::new("OrderBy", InputValue::Enum(direction.to_owned())))
            };
            let terms = list.order.iter().map(term).collect();
            arguments.push(("orderBy", Input::new(format!("{ty}OrderByInput"), InputValue::Object(terms))));
        }
        arguments.shuffle(self.rng);
        let name = list.relationship.map_or(TABLES[list.table].root(), |it| it.name);
        let head = self.with_arguments(&called(&list.key, name), arguments);
        self.object(&head, &format!("{ty}Connection"), &list.parts, |speller, part| {
            speller.part(&TABLES[list.table].ty(), part)
        })
    }

    fn with_arguments(&mut self, head: &str, arguments: Vec<(&str, Input)>) -> String {
        if arguments.is_empty() {
            return head.to_owned();
        }
        let each: Vec<String> =
            arguments.iter().map(|(name, input)| format!("{name}: {}", self.value(input))).collect();
        format!("{head}({})", each.join(", "))
    }

    fn part(&mut self, ty: &str, part: &Part) -> Spelt {
        match part {
            Part::Typename(key) => (called(key, "__typename"), None),
            Part::EndCursor(key) => (called(key, "endCursor"), None),
            Part::HasNextPage(key) => (called(key, "hasNextPage"), None),
            Part::TotalCount(key) => (called(key, "totalCount"), None),
            Part::Items(key, members) => self.object(&called(key, "items"), ty, members, Speller::member),
            Part::Groups(groups) => self.groups(ty, groups),
        }
    }

    fn groups(&mut self, ty: &str, groups: &Groups) -> Spelt {
        let mut arguments = Vec::new();
        if !groups.by.is_empty() {
            let item = |name: &str| Input::new(format!("{ty}Field!"), InputValue::Enum(name.to_owned()));
            let items = groups.by.iter().map(|field| item(field.name)).collect();
            arguments.push(("fields", Input::new(format!("[{ty}Field!]"), InputValue::List(items))));
        }
        if let Some(first) = groups.first {
            arguments.push(("first", Input::new("Int", InputValue::Json(json!(first)))));
        }
        let head = self.with_arguments(&called(&groups.key, "groupBy"), arguments);
        self.object(&head, &format!("{ty}Group"), &groups.parts, |speller, part| match part {
            GroupPart::Typename(key) => (called(key, "__typename"), None),
            GroupPart::Fields(key, fields) => {
                let of = format!("{ty}GroupFields");
                speller.object(&called(key, "fields"), &of, fields, |_, (key, field)| {
                    (called(key, field.map_or("__typename", |field| field.name)), None)
                })
            }
            GroupPart::Aggregations(key, aggregates) => {
                let of = format!("{ty}Aggregations");
                speller.object(&called(key, "aggregations"), &of, aggregates, |speller, (key, aggregate)| {
                    match aggregate {
                        None => (called(key, "__typename"), None),
                        Some(aggregate) => (speller.aggregate(ty, key, aggregate), None),
                    }
                })
            }
        })
    }

    fn aggregate(&mut self, ty: &str, key: &str, aggregate: &Aggregate) -> String {
        let mut arguments = Vec::new();
        let is_number = matches!(aggregate.function, "sum" | "avg");
        if let Some(field) = aggregate.field {
            let of = format!("{ty}{}", if is_number { "NumericField!" } else { "Field" });
            let of = if aggregate.function == "count" || is_number { of } else { format!("{of}!") };
            arguments.push(("field", Input::new(of, InputValue::Enum(field.name.to_owned()))));
        }
        if aggregate.distinct {
            arguments.push(("distinct", Input::new("Boolean", InputValue::Json(json!(true)))));
        }
        if !aggregate.having.is_empty() {
            let (input, scalar) = match aggregate.function {
                "min" | "max" => ("HavingValueInput", "JSON"),
                _ => ("HavingInput", "Decimal"),
            };
            let one = |(word, text): &(&'static str, String)| {
                let input = match *word {
                    "isNull" => Input::new("Boolean", InputValue::Json(json!(text == "true"))),
                    _ => Input::new(scalar, InputValue::Json(input::number(text))),
                };
                ((*word).to_owned(), input)
            };
            let conditions = aggregate.having.iter().map(one).collect();
            arguments.push(("having", Input::new(input, InputValue::Object(conditions))));
        }
        self.with_arguments(&called(key, aggregate.function), arguments)
    }

    /// An object that may be asked for twice, with a part of its members each.
    fn object<T>(
        &mut self,
        head: &str,
        ty: &str,
        members: &[T],
        spell: impl Fn(&mut Self, &T) -> Spelt,
    ) -> Spelt {
        let mut spelt: Vec<Spelt> = members.iter().map(|member| spell(self, member)).collect();
        let n = spelt.len();
        if 1 < n && self.rng.random_bool(0.12) {
            let below = spelt.split_off(self.rng.random_range(1..n));
            let (above, below) = (self.set(ty, spelt), self.set(ty, below));
            return (format!("{head} {above}"), Some(format!("{head} {below}")));
        }
        (format!("{head} {}", self.set(ty, spelt)), None)
    }

    /// A selection set.
    fn set(&mut self, ty: &str, members: Vec<Spelt>) -> String {
        let mut texts: Vec<String> = Vec::new();
        let mut later = Vec::new();
        for (text, below) in members {
            texts.push(text);
            later.extend(below);
        }
        texts.extend(later);
        // a field that has no arguments and no members may stand there twice
        if let Some(again) = texts.first().filter(|text| !text.contains(['{', '('])).cloned()
            && self.rng.random_bool(0.1)
        {
            texts.push(again);
        }
        if self.rng.random_bool(0.2) {
            let begin = self.rng.random_range(0..texts.len());
            let end = self.rng.random_range(begin..texts.len());
            let inner: Vec<String> = texts.drain(begin..=end).collect();
            let inner = format!("{{ {} }}", inner.join(" "));
            let text = match self.rng.random_range(0..5) {
                0 => format!("... on {ty} {inner}"),
                1 => format!("... {inner}"),
                2 => format!("... @include(if: {}) {inner}", self.flag(true)),
                3 => format!("... on {ty} @skip(if: {}) {inner}", self.flag(false)),
                _ => {
                    let name = format!("F{}", self.fragments.len());
                    self.fragments.push(format!("fragment {name} on {ty} {inner}"));
                    if self.rng.random_bool(0.2) {
                        format!("...{name} ...{name}")
                    } else {
                        format!("...{name}")
                    }
                }
            };
            texts.insert(begin, text);
        }
        if self.rng.random_bool(0.1) {
            self.n_decoys += 1;
            let decoy = format!("d{}: __typename", self.n_decoys);
            let text = match self.rng.random_range(0..3) {
                0 => format!("{decoy} @skip(if: {})", self.flag(true)),
                1 => format!("{decoy} @include(if: {})", self.flag(false)),
                _ => format!("... @include(if: {}) {{ {decoy} }}", self.flag(false)),
            };
            texts.insert(self.rng.random_range(0..=texts.len()), text);
        }
        let between = *[" ", " ", ", ", "\n  "].choose(self.rng).expect("some");
        format!("{{ {} }}", texts.join(between))
    }

    fn flag(&mut self, flag: bool) -> String {
        self.value(&Input::new("Boolean!", InputValue::Json(json!(flag))))
    }

    /// As text, or as a variable.
    fn value(&mut self, input: &Input) -> String {
        if self.rng.random_bool(0.15) {
            let name = format!("v{}", self.declared.len());
            if self.rng.random_bool(0.3) {
                self.declared.push(format!("${name}: {} = {}", input.ty, literal(input)));
            } else {
                self.declared.push(format!("${name}: {}", input.ty));
                self.variables.insert(name.clone(), input.json());
            }
            return format!("${name}");
        }
        self.written(input)
    }

    fn written(&mut self, input: &Input) -> String {
        match &input.value {
            // a list of one value may be that value, which then is no variable
            InputValue::List(items) if items.len() == 1 && self.rng.random_bool(0.3) => {
                self.written(&items[0])
            }
            InputValue::List(items) => {
                let each: Vec<String> = items.iter().map(|item| self.value(item)).collect();
                format!("[{}]", each.join(", "))
            }
            InputValue::Object(fields) => {
                let each: Vec<String> =
                    fields.iter().map(|(name, of)| format!("{name}: {}", self.value(of))).collect();
                format!("{{{}}}", each.join(", "))
            }
            InputValue::Enum(_) | InputValue::Json(_) => literal(input),
        }
    }
}

fn literal(input: &Input) -> String {
    match &input.value {
        InputValue::Enum(name) => name.clone(),
        InputValue::Json(value) => value.to_string(),
        InputValue::List(items) => {
            format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        InputValue::Object(fields) => {
            let each = fields.iter().map(|(name, of)| format!("{name}: {}", literal(of)));
            format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
        }
    }
}

fn called(key: &str, name: &str) -> String {
    if key == name { name.to_owned() } else { format!("{key}: {name}") }
}
