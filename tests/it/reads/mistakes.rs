//! What users of other products write by habit, and the answer that each gets: it names what to write, and what it names
//! is then sent and answered.

mod headers;
mod of_odata;
mod of_postgrest;
mod of_sql;

use rowgate_core::problem::Code;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::world::World;
use serde_json::json;

use crate::http::conventions::assert_shape;

/// One line of the tables.
struct Mistake {
    /// As it would be typed, below `/auth/shop/api/`.
    sent: &'static str,
    code: Code,
    /// Words of the answer.
    says: &'static str,
    /// What is then written; empty where no address does what was asked for. Its option stands in the answer.
    remedy: &'static str,
}

const fn option(sent: &'static str, says: &'static str, remedy: &'static str) -> Mistake {
    Mistake { sent, code: Code::BadRequest, says, remedy }
}

const fn filter(sent: &'static str, says: &'static str, remedy: &'static str) -> Mistake {
    Mistake { code: Code::InvalidFilter, ..option(sent, says, remedy) }
}

const fn order(sent: &'static str, says: &'static str, remedy: &'static str) -> Mistake {
    Mistake { code: Code::InvalidOrderBy, ..option(sent, says, remedy) }
}

const fn field(sent: &'static str, says: &'static str, remedy: &'static str) -> Mistake {
    Mistake { code: Code::UnknownField, ..option(sent, says, remedy) }
}

const fn entity(sent: &'static str, says: &'static str, remedy: &'static str) -> Mistake {
    Mistake { code: Code::EntityNotFound, ..option(sent, says, remedy) }
}

struct Shop {
    world: World,
    client: Client,
    key: String,
}

impl Shop {
    async fn get(&self, path: &str) -> Reply {
        let url = self.world.shop_url(&format!("/{}", typed(path)));
        self.client.get(&url, &[("X-API-Key", &self.key)]).await
    }

    /// Message and details of an error.
    fn words(reply: &Reply) -> String {
        let error = reply.json()["error"].take();
        let details = error["details"].as_array().expect("a list").iter();
        let words = [&error["message"]].into_iter().chain(details).map(|it| it.as_str().expect("a text"));
        words.collect::<Vec<_>>().join("; ")
    }

    /// What is wrong with the answer to a mistake, or with the one to its remedy.
    async fn check(&self, Mistake { sent, code, says, remedy }: &Mistake) -> Option<String> {
        let reply = self.get(sent).await;
        if reply.status.as_u16() != code.status() {
            return Some(format!("{sent}: {} {}", reply.status, reply.body));
        }
        let words = Shop::words(&reply);
        if reply.json()["error"]["code"] != json!(code) || !words.contains(says) {
            return Some(format!("{sent}: {words:?} and not {code:?} {says:?}"));
        }
        assert_shape(&reply, *code, sent);
        if remedy.is_empty() {
            return None;
        }
        // What is to be written stands there: an option with its value, or the value alone of one that was sent.
        let written = remedy.split_once('?').map_or(*remedy, |(_, options)| options);
        let value = written.split_once('=').map_or(written, |(_, value)| value);
        let is_named = says.strip_prefix("write ").is_none_or(|shown| {
            written.contains(shown) || [written, value].iter().any(|it| words.contains(it))
        });
        if !is_named {
            return Some(format!("{sent}: {remedy} is not in {words:?}"));
        }
        let reply = self.get(remedy).await;
        (reply.status != 200).then(|| format!("{sent}: {remedy}: {} {}", reply.status, reply.body))
    }
}

/// As a browser sends what is typed.
fn typed(path: &str) -> String {
    let escape = |c: char| match c {
        ' ' | '"' | '<' | '>' | '{' | '}' | '|' | '\\' | '^' | '`' | '\u{80}'.. => {
            c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
        }
        c => c.to_string(),
    };
    path.chars().map(escape).collect()
}

/// Seen to fail with a parameter that is ignored, and with a remedy that is none.
#[tokio::test]
async fn a_habit_of_another_product_is_answered_with_what_to_write() {
    let mut world = World::founded_shop().await;
    world.start().await;
    let key = world.key("shop-admin");
    let shop = Shop { world, client: Client::new(), key };
    let (mut n_mistakes, mut wrong) = (0, Vec::new());
    for (product, mistakes) in [
        ("PostgREST", of_postgrest::POSTGREST),
        ("Hasura", of_postgrest::HASURA),
        ("OData", of_odata::ODATA),
        ("Data API builder", of_odata::DATA_API_BUILDER),
        ("JSON:API and others", of_sql::OTHERS),
        ("SQL", of_sql::SQL),
    ] {
        for mistake in mistakes {
            wrong.extend(shop.check(mistake).await.map(|what| format!("{product}: {what}")));
        }
        n_mistakes += mistakes.len();
    }
    assert!(wrong.is_empty(), "{} of {n_mistakes}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(60 <= n_mistakes, "{n_mistakes} mistakes");
    // What looks like nothing of ours is ignored, as links with a campaign's name need it.
    for ignored in ["?utm_source=mail", "?_=1712", "?api-version=2", "?format=json", "?foo=eq.5"] {
        let reply = shop.get(&format!("orders{ignored}&$first=1")).await;
        assert_eq!(reply.rows().len(), 1, "{ignored}");
    }
    headers::check(&shop).await;
    slashes(&shop).await;
    constants(&shop).await;
}

/// A slash at the end of an address is none, for those who may see what is there.
async fn slashes(shop: &Shop) {
    for path in ["", "/customers", "/customers/id/7", "/customers?$first=2", "/customers/id/7?$select=name"] {
        let (at, query) =
            path.split_once('?').map_or((path, String::new()), |(at, query)| (at, format!("?{query}")));
        let ask = async |path: &str, key: &str| {
            let headers = [("X-API-Key", key), ("X-Request-Id", "same")];
            shop.client.get(&shop.world.shop_url(path), &headers).await.tellable()
        };
        let with = ask(&format!("{at}/{query}"), &shop.key).await;
        assert_eq!(with, ask(path, &shop.key).await, "{path}");
        assert_eq!(with.status, 200, "{path}");
        assert_eq!(ask(&format!("{at}/{query}"), "shop:dlk_x").await.status, 401, "{path}");
    }
    let post = |path: &str| shop.world.shop_url(path);
    let headers = [("X-API-Key", &*shop.key), ("Content-Type", "application/json")];
    let body =
        r#"{"name": "A", "email": "slash@example.com", "region": "north", "signedUpOn": "2026-01-01"}"#;
    let made = shop.client.send("POST", &post("/customers/"), &headers, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let location = made.header("location").expect("the row's address").to_owned();
    assert!(location.contains("/api/customers/id/") && !location.ends_with('/'), "{location}");
    let gone = shop.client.send("DELETE", &format!("{location}/"), &headers, "").await;
    assert_eq!(gone.status, 204, "{gone:?}");
}

/// Constants that OData writes, and comparisons of nothing but constants.
async fn constants(shop: &Shop) {
    let n = async |filter: &str| {
        let reply = shop.get(&format!("orders?$first=1&$count=true&$filter={filter}")).await;
        assert_eq!(reply.status, 200, "{filter}: {reply:?}");
        reply.json()["count"].as_u64().expect("a count")
    };
    let all = n("true").await;
    assert!(0 < all);
    for filter in [
        "1 eq 1",
        "'a' lt 'b'",
        "null eq null",
        "1 ne 1.5",
        "length('abc') eq 3",
        "duration'PT1H' gt duration'PT59M59.5S'",
        "duration'-PT1H' lt duration'PT0S'",
        "binary'AQID' eq binary'AQID'",
        "5 in (4,5)",
        "1 eq null or 1 eq 1",
        "state eq Shop.State'paid' or state ne 'paid'",
        "placed_at gt datetimeoffset'2000-01-01T00:00:00Z'",
    ] {
        assert_eq!(n(filter).await, all, "{filter}");
    }
    for filter in ["1 ne 1", "false", "null ne null", "1 eq null", "duration'P1D' ne duration'PT24H'"] {
        assert_eq!(n(filter).await, 0, "{filter}");
    }
    // NULL is left out by ne, and found by asking for it.
    let (shipped, other) = (n("shipped_on eq 2026-01-05").await, n("shipped_on ne 2026-01-05").await);
    let null = n("shipped_on eq null").await;
    assert!(0 < null && shipped + other + null == all, "{shipped} {other} {null} {all}");
    assert_eq!(n("shipped_on ne 2026-01-05 or shipped_on eq null").await, other + null);
    let reply = shop.get("orders?$filter=state eq 'open'").await;
    let labels =
        json!("the field \"state\" is shop.order_state: write one of 'new', 'paid', 'shipped', 'returned'");
    assert_eq!(reply.json()["error"]["message"], labels);
}
