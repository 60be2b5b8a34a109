//! `rowgate get`: rows of an entity page by page, or one row.

mod key;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;
use url::Url;

use self::key::RowKey;
use super::{print_rows, take_rows, unexpected};
use crate::context::Context;
use crate::failure::Failure;
use crate::http::address;
use crate::http::client::Api;
use crate::http::request::Request;
use crate::output::notice::notice;
use crate::output::rows::RowPrinter;
use crate::output::{Format, escape};

/// The rows of a page that every tenant allows. Beyond it, the tenant's largest page is asked for.
const SURE_PAGE: u64 = 100;

/// The flags of `get`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Without --top and --all one page is printed, 100 rows at most; a note on standard error says when
there are more. --all prints rows as they arrive, page by page.

Examples:
  rowgate get orders --filter \"region eq 'north' and id gt 10\" --select id,state --orderby 'id desc' --top 5
  rowgate get orders --expand 'customer($select=name),lines' --all -o jsonl > orders.jsonl
  rowgate get orders 7
  rowgate get order_lines order_id=7,line_no=1"
)]
pub(crate) struct GetFlags {
    /// The name of the entity, as `rowgate whoami` lists it
    #[arg(value_name = "ENTITY", value_parser = NonEmptyStringValueParser::new())]
    entity: String,
    /// One row, by its key: the value alone, or the name and the value of each key field [example: 7] [example: order_id=7,line_no=2]
    #[arg(value_name = "KEY", conflicts_with_all = ["filter", "orderby", "top", "all"])]
    key: Option<String>,
    /// A condition on the rows [example: "state eq 'new' and id gt 10"]
    #[arg(long, value_name = "CONDITION")]
    filter: Option<String>,
    /// The fields to print, separated by commas [default: all that the key may read]
    #[arg(long, value_name = "FIELDS")]
    select: Option<String>,
    /// The order of the rows [example: 'placed_at desc,id']
    #[arg(long, value_name = "FIELDS")]
    orderby: Option<String>,
    /// Related rows to embed [example: 'customer($select=name)']
    #[arg(long, value_name = "RELATIONSHIPS")]
    expand: Option<String>,
    /// At most so many rows, from as many pages as that needs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    top: Option<u64>,
    /// All rows, from all pages
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// The format of the output [default: table on a terminal, else json]
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
}

pub(crate) async fn run(flags: GetFlags, context: &mut Context) -> Result<(), Failure> {
    let connection = context.connection()?;
    let (api, tenant) = (Api::new(&connection)?, connection.tenant()?);
    let format = Format::or_default(flags.output, context.output.is_terminal);
    if let Some(key) = &flags.key {
        let key = match RowKey::parse(key).map_err(Failure::Usage)? {
            Some(key) => key,
            None => of_value(&api, tenant, &flags.entity, key).await?,
        };
        let answer = api.json(&flags.row(tenant, &key)).await;
        let mut answer = answer.map_err(|failure| flags.hinted(tenant, failure))?.value;
        let Some(row) = take_rows(&mut answer, "value")?.pop() else {
            let what = format!("there is no row {key} in {}, or this API key does not see it", flags.entity);
            return Err(Failure::refused(what));
        };
        return match format {
            Format::Json => context.output.line(&escape::pretty(&row)),
            other => print_rows(&mut context.output, other, None, &[row]),
        };
    }
    let output = &mut context.output;
    let mut printer = RowPrinter::new(format, None, output.is_terminal, output.width());
    let mut after = None;
    loop {
        let page = api.json(&flags.page(tenant, after.as_deref())).await;
        let mut page = page.map_err(|failure| flags.hinted(tenant, failure))?.value;
        let mut rows = take_rows(&mut page, "value")?;
        after = cursor(&page)?;
        let left = flags.top.map(|top| top - printer.n_rows()).and_then(|left| usize::try_from(left).ok());
        if let Some(left) = left.filter(|left| *left <= rows.len()) {
            rows.truncate(left);
            after = None;
        }
        for row in &rows {
            let text = printer.row(row);
            output.write(&text)?;
        }
        output.flush()?;
        if after.is_none() || !(flags.all || flags.top.is_some()) {
            break;
        }
    }
    output.write(&printer.end())?;
    output.flush()?;
    if printer.n_rows() == 0 && matches!(format, Format::Table | Format::Csv) {
        // which print nothing then, since rows name the columns
        notice("no rows");
    }
    if after.is_some() {
        notice(&format!(
            "these are the first {} rows; --all prints all, --top N as many as you name",
            printer.n_rows()
        ));
    }
    if !printer.left_out().is_empty() {
        let names: Vec<&str> = printer.left_out().iter().map(String::as_str).collect();
        notice(&format!("the first row has no {}; -o jsonl prints what is left out here", names.join(", ")));
    }
    Ok(())
}

/// A value alone is that of the only key field, whose name the server knows.
async fn of_value(api: &Api, tenant: &str, entity: &str, value: &str) -> Result<RowKey, Failure> {
    let mut answer = api.json(&Request::get(address::path(&["auth", tenant, "api"]))).await?.value;
    let entities = take_rows(&mut answer, "value")?;
    let Some(found) = entities.iter().find(|row| row.get("name").is_some_and(|name| name == entity)) else {
        let what = format!("this API key has no entity {entity:?}; `rowgate whoami` lists those that it has");
        return Err(Failure::refused(what));
    };
    let fields = found.get("keyFields").and_then(Value::as_array).into_iter().flatten();
    match fields.filter_map(Value::as_str).collect::<Vec<_>>()[..] {
        [] => Err(Failure::refused(format!("{entity} has no key; read its rows with --filter"))),
        [field] => Ok(RowKey::of(field, value)),
        ref fields => {
            let example: Vec<String> = fields.iter().map(|field| format!("{field}=...")).collect();
            let what = format!("{entity} has {} key fields; write {}", fields.len(), example.join(","));
            Err(Failure::Usage(what))
        }
    }
}

impl GetFlags {
    /// A page, behind the cursor of the one before.
    fn page(&self, tenant: &str, after: Option<&str>) -> Request {
        let first = match self.top {
            Some(top) if top <= SURE_PAGE => Some(top.to_string()),
            Some(_) => Some("-1".to_owned()),
            None => self.all.then(|| "-1".to_owned()),
        };
        let options = [
            ("$select", self.select.clone()),
            ("$filter", self.filter.clone()),
            ("$orderby", self.orderby.clone()),
            ("$expand", self.expand.clone()),
            ("$first", first),
            ("$after", after.map(str::to_owned)),
        ];
        Request::get(address::path(&["auth", tenant, "api", &self.entity])).query(&some(options))
    }

    fn row(&self, tenant: &str, key: &RowKey) -> Request {
        let parts: Vec<&str> = ["auth", tenant, "api", &self.entity].into_iter().chain(key.parts()).collect();
        let options = [("$select", self.select.clone()), ("$expand", self.expand.clone())];
        Request::get(address::path(&parts)).query(&some(options))
    }

    /// A refusal in the words of HTTP, with what to do on a command line.
    fn hinted(&self, tenant: &str, failure: Failure) -> Failure {
        failure.hinted(|problem| match problem.code.as_str() {
            "EntityNotFound" => Some("`rowgate whoami` prints that list".to_owned()),
            "MethodNotAllowed" => {
                let path = address::path(&["auth", tenant, "api", &self.entity]);
                Some(format!("rowgate has no command for calls: send POST {path} with the arguments as JSON"))
            }
            _ => None,
        })
    }
}

fn some<const N: usize>(options: [(&'static str, Option<String>); N]) -> Vec<(&'static str, String)> {
    options.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The cursor in `nextLink`. The link itself may name a host that only the server knows, behind a proxy; the key is not sent there.
fn cursor(page: &Value) -> Result<Option<String>, Failure> {
    let Some(link) = page.get("nextLink").filter(|link| !link.is_null()) else { return Ok(None) };
    let url = link.as_str().and_then(|link| Url::parse(link).ok()).ok_or_else(|| unexpected("nextLink"))?;
    let after = url.query_pairs().find(|(name, _)| name == "$after").map(|(_, value)| value.into_owned());
    after.map(Some).ok_or_else(|| unexpected("nextLink"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: GetFlags,
    }

    fn flags(line: &[&str]) -> GetFlags {
        Line::parse_from([&["get", "orders"], line].concat()).flags
    }

    fn page(line: &[&str], after: Option<&str>) -> String {
        let at = flags(line).page("shop", after).at;
        format!("{at:?}").replace("Path(\"/auth/shop/api/orders", "").replace("\")", "")
    }

    #[test]
    fn flags_become_options() {
        assert_eq!(page(&[], None), "");
        assert_eq!(page(&["--top", "5"], None), "?$first=5");
        assert_eq!(page(&["--top", "500"], Some("c")), "?$first=-1&$after=c");
        assert_eq!(page(&["--all"], None), "?$first=-1");
        let line =
            ["--filter", "a eq 'x'", "--select", "a,b", "--orderby", "a desc", "--expand", "c($first=1)"];
        let options = "?$select=a%2Cb&$filter=a%20eq%20%27x%27&$orderby=a%20desc&$expand=c%28%24first%3D1%29";
        assert_eq!(page(&line, None), options);
    }

    #[test]
    fn a_row_has_its_key_in_the_address() {
        let key = RowKey::parse("a=1,b=x y").expect("a key").expect("with names");
        let row = Request::get("/auth/shop/api/orders/a/1/b/x%20y?$select=id".to_owned());
        assert_eq!(flags(&["--select", "id"]).row("shop", &key), row);
        assert!(Line::try_parse_from(["get", "orders", "id/7", "--top", "1"]).is_err());
    }

    #[test]
    fn the_next_page_is_behind_the_cursor_of_the_link() {
        let link = "http://internal:1/auth/shop/api/orders?$first=2&$after=a%2Bb";
        assert_eq!(cursor(&json!({"value": [], "nextLink": link})).expect("a link"), Some("a+b".to_owned()));
        assert_eq!(cursor(&json!({"value": []})).expect("no link"), None);
        cursor(&json!({"nextLink": "http://a/?x=1"})).expect_err("a link without a cursor");
    }
}
