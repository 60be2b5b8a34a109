//! One key of a running tenant, and the cases that it asks.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rowgate_tests::client::{Client, Reply};
use serde_json::Value;

use super::comparing::{self, Page};
use super::document::generate::Generator;
use super::document::intruder::{SPOTS, absent};
use super::document::spell::{Request, spell};
use super::document::{After, Document, List, Member, Part, Root};
use super::leaks::Hidden;
use super::oracle::Oracle;
use super::oracle::rest::Rest;
use super::world::drawn::{Drawn, Key};
use super::world::rights::Rights;
use super::world::tables::{RELATIONSHIPS, TABLES};
use crate::graphql::schemas::INTROSPECTION;

/// How many cases came out how.
pub(super) type Tally = BTreeMap<String, usize>;

pub(super) struct Asker<'a> {
    drawn: &'a Drawn,
    key: &'a Key,
    rights: Rights,
    oracle: Oracle,
    hidden: Hidden,
    url: String,
    pub(super) introspection: Value,
    /// Some of the requests, and whether they were answered.
    pub(super) samples: Vec<(Request, bool)>,
    tally: Tally,
}

/// What differs, and what was asked.
pub(super) type Difference = String;

impl<'a> Asker<'a> {
    /// `key`: what to send; `between`: the key that reads what links rows.
    pub(super) async fn open(
        url: &str,
        drawn: &'a Drawn,
        key: &'a Key,
        secrets: (String, String),
    ) -> Result<Asker<'a>, Difference> {
        let rights = Rights::of(drawn, key);
        let base = format!("{url}/auth/{}/api", drawn.slug());
        let rest = |key: String| Rest { client: Client::new(), url: base.clone(), key };
        let oracle = Oracle::open(rest(secrets.0), rest(secrets.1), &rights.tables()).await;
        let hidden = Hidden::of(drawn, &rights.hidden(), &oracle.rows);
        let url = format!("{url}/auth/{}/graphql", drawn.slug());
        let (introspection, samples, tally) = (Value::Null, Vec::new(), Tally::new());
        let mut asker = Asker { drawn, key, rights, oracle, hidden, url, introspection, samples, tally };
        asker.introspect().await?;
        Ok(asker)
    }

    /// The whole schema: every name that the key may use, and no other.
    async fn introspect(&mut self) -> Result<(), Difference> {
        let body = serde_json::json!({"query": INTROSPECTION}).to_string();
        let reply = self.post(&body).await;
        let leaked = self.hidden.found("", &reply);
        if !leaked.is_empty() {
            return Err(format!("{} sees in its schema {leaked:?}", self.key.name));
        }
        let absent: Vec<&&str> =
            self.rights.names.iter().filter(|name| !reply.body.contains(**name)).collect();
        if !absent.is_empty() {
            return Err(format!("the schema of {} lacks {absent:?}", self.key.name));
        }
        self.introspection = reply.json()["data"].take();
        for (at, rows) in self.oracle.rows.iter().enumerate() {
            let fields: Vec<&str> = self.rights.fields(at).iter().map(|field| field.name).collect();
            let rest = rows.first().map(|row| row.values.keys().map(String::as_str).collect::<Vec<_>>());
            if rest.is_some_and(|rest| rest != fields) {
                return Err(format!("{} reads {:?} and not {fields:?}", self.key.name, rows.first()));
            }
            // each row by itself is as the list has it
            for row in rows {
                let found = self.oracle.rest.row(at, row).await;
                if found.as_ref() != Some(&Value::Object(row.values.clone())) {
                    return Err(format!("{}: {found:?} and not {row:?}", self.key.name));
                }
            }
        }
        Ok(())
    }

    async fn post(&self, body: &str) -> Reply {
        let headers = [
            ("X-API-Key", self.oracle.rest.key.as_str()),
            ("Content-Type", "application/json"),
            ("X-Request-Id", "1"),
        ];
        self.oracle.rest.client.send("POST", &self.url, &headers, body).await
    }

    /// The cases with these numbers.
    pub(super) async fn ask(&mut self, numbers: impl Iterator<Item = u64>) -> Result<Tally, Difference> {
        for number in numbers {
            let seed =
                self.drawn.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0x0100_0000_01b3);
            let asked = match number % 4 {
                3 => self.hidden(seed).await,
                of => self.read(seed, of == 0 && number % 8 == 0).await,
            };
            let says = |what: String| {
                let seed = self.drawn.seed;
                format!("tenant {seed}, case {number}, {}\n{what}", self.key.name)
            };
            asked.map_err(says)?;
        }
        Ok(std::mem::take(&mut self.tally))
    }

    /// A query that the key may ask. `each`: its lists by a request each, too.
    async fn read(&mut self, seed: u64, each: bool) -> Result<(), Difference> {
        let mut rng = StdRng::seed_from_u64(seed);
        let document = Generator::new(self.drawn, &self.rights, rng.random()).document();
        let pages = self.answered(&mut rng, &document).await?;
        if each {
            self.each().await?;
        }
        let Some(page) = (!pages.is_empty()).then(|| &pages[rng.random_range(0..pages.len())]) else {
            return Ok(());
        };
        let mut next = document;
        behind(&mut next, page);
        self.count("next pages");
        self.answered(&mut rng, &next).await.map(|_| ())
    }

    /// Asks a query, and holds the answer against the oracle's.
    async fn answered(&mut self, rng: &mut StdRng, document: &Document) -> Result<Vec<Page>, Difference> {
        let request = spell(rng, document);
        let body = request.body();
        let reply = self.post(&body).await;
        let wanted = self.oracle.data(document).await;
        let shown = |what: String| {
            format!("{}\nvariables {}\n{what}", request.text, Value::Object(request.variables.clone()))
        };
        let leaked = self.hidden.found(&body, &reply);
        if !leaked.is_empty() {
            return Err(shown(format!("gives {leaked:?}, which the key does not see: {}", reply.body)));
        }
        let answer = reply.json();
        if reply.status != 200 || !answer["errors"].is_null() {
            return Err(shown(format!("is refused: {}", reply.body)));
        }
        let mut pages = Vec::new();
        comparing::agree(&answer["data"], &wanted, "data", &mut pages).map_err(shown)?;
        self.count(if reply.body.matches(['{', '[']).count() < 8 { "short answers" } else { "long answers" });
        if self.samples.len() < 12 {
            self.samples.push((request, true));
        }
        Ok(pages)
    }

    /// The lists within rows, by one request each.
    async fn each(&mut self) -> Result<(), Difference> {
        let each = self.oracle.each.take();
        for (table, options, wanted) in each.into_iter().take(6) {
            let found = self.oracle.rest.each(table, &options).await;
            if found != wanted {
                let entity = TABLES[table].entity;
                return Err(format!(
                    "{entity}?{options} is {found:?} over REST, and GraphQL gave {wanted:?}"
                ));
            }
            self.count("lists by a request of their own");
        }
        Ok(())
    }

    /// A query with a name that the key may not use: the answer is that for a name that nothing has.
    async fn hidden(&mut self, seed: u64) -> Result<(), Difference> {
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..8 {
            let spot = SPOTS[rng.random_range(0..SPOTS.len())];
            let mut generator = Generator::new(self.drawn, &self.rights, rng.random());
            let Some((document, name)) = generator.intruding(self.key, spot) else { continue };
            let request = spell(&mut rng, &document);
            let body = request.body();
            // a condition that stood twice in an object is gone, with what was in it
            if !body.contains(name) {
                continue;
            }
            let absent = absent(&mut rng, name);
            let hidden = self.post(&body).await;
            let other = self.post(&body.replace(name, &absent)).await;
            let leaked = self.hidden.found(&body, &hidden);
            let shown = |what: String| {
                format!("{}\nvariables {}\n{what}", request.text, Value::Object(request.variables.clone()))
            };
            if !leaked.is_empty() {
                return Err(shown(format!("gives {leaked:?}, which the key does not see: {}", hidden.body)));
            }
            let same = other.body.replace(&absent, name);
            let (mut hidden, mut other) = (hidden.tellable(), other.tellable());
            if let (false, Some(field)) =
                (hidden.body.contains("\"errors\":"), hidden.json()["data"].as_object())
            {
                let is_introspection = request.text.contains("__type(");
                if !is_introspection || field.is_empty() {
                    return Err(shown(format!("is answered for the hidden name {name}: {}", hidden.body)));
                }
            }
            hidden.headers.remove("content-length");
            other.headers.remove("content-length");
            if (hidden.status, &hidden.headers, &hidden.body) != (other.status, &other.headers, &same) {
                return Err(shown(format!("tells {name} from {absent}:\n{hidden:?}\n{other:?}")));
            }
            self.count(&format!("{spot:?} hidden"));
            // graphql-js looks at the text alone, and at no mutation where there is none
            if self.samples.len() < 20 && request.text.contains(name) && !document.is_mutation {
                let is_valid = request.text.contains("__type(");
                self.samples.push((request, is_valid));
            }
            return Ok(());
        }
        self.count("nothing is hidden");
        Ok(())
    }

    fn count(&mut self, what: &str) {
        *self.tally.entry(what.to_owned()).or_default() += 1;
    }
}

/// A document that uses each relationship that the key follows.
pub(super) fn everything() -> String {
    let mut text = String::new();
    for (at, table) in TABLES.iter().enumerate().filter(|(_, table)| table.in_graphql) {
        let of_table = RELATIONSHIPS.iter().filter(|it| it.from == at && TABLES[it.to].in_graphql);
        let members: Vec<String> = of_table.map(|it| format!("{} {{ __typename }}", it.name)).collect();
        text.push_str(&format!(
            "{}(first: 1) {{ items {{ __typename {} }} }} ",
            table.root(),
            members.join(" ")
        ));
    }
    format!("{{ {text}}}")
}

/// Lets the list go on behind a page, wherever it stands.
fn behind(document: &mut Document, page: &Page) {
    fn of_list(list: &mut List, page: &Page) {
        if list.number == page.list {
            list.after = Some(After { cursor: page.cursor.clone(), row: page.row.clone() });
        }
        for part in &mut list.parts {
            if let Part::Items(_, members) = part {
                of_members(members, page);
            }
        }
    }
    fn of_members(members: &mut [Member], page: &Page) {
        for member in members {
            match member {
                Member::Many(list) => of_list(list, page),
                Member::One { members, .. } => of_members(members, page),
                Member::Typename(_) | Member::Value { .. } | Member::Raw(_) => {}
            }
        }
    }
    for root in &mut document.roots {
        match root {
            Root::List(list) => of_list(list, page),
            Root::Row { members, .. } => of_members(members, page),
            Root::Typename(_) | Root::Raw(_) => {}
        }
    }
}
