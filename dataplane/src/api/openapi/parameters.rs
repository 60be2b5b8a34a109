//! Options of the query string, headers of requests, and the key of a row in its address.

use rowgate_core::percent;
use serde_json::{Value, json};

use crate::api::openapi::access::{Rows, name_in_list};
use crate::api::openapi::examples;
use crate::api::openapi::schemas::Column;
use crate::api::openapi::sections::Members;

/// Those that are the same for every entity.
pub(super) fn shared(parameters: &mut Members, max_page_size: u32) {
    let default = 100.min(max_page_size);
    let query = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
    let first = json!({
        "type": "integer", "minimum": -1, "maximum": max_page_size, "not": {"const": 0}, "default": default,
    });
    let what = "How many rows a page has at most; -1 stands for the largest page that this tenant allows";
    parameters.add("first", &query("$first", what, first));
    let what = "Where the page begins: the value of $after in the nextLink of the page before it";
    parameters.add("after", &query("$after", what, json!({"type": "string"})));
    let what = "Whether the answer has the number of rows on all pages";
    parameters.add("count", &query("$count", what, json!({"type": "boolean", "default": false})));
    let header = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "header", "description": description, "schema": schema});
    let what = "return=minimal: answer 204 without the rows";
    let preferences = json!({"type": "string", "enum": ["return=representation", "return=minimal"]});
    parameters.add("prefer", &header("Prefer", what, preferences));
    let what = "Only a row that exists is written";
    let any = json!({"type": "string", "enum": ["*"]});
    parameters.add("if-match-any", &header("If-Match", what, any.clone()));
    let what = "Only a new row is made, and none that exists is changed";
    parameters.add("if-none-match-any", &header("If-None-Match", what, any));
    let tags = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let what = "The row's ETag as it was read, or *: only a row of that version is written, else 412";
    let of_row = r#"^(\*|"[0-9a-f]{16}-[0-9a-f]{16}")$"#;
    parameters.add("if-match", &header("If-Match", what, tags(of_row)));
    let what = "An ETag that was answered before: 304 where the answer would be the same";
    parameters.add("if-none-match", &header("If-None-Match", what, tags(r#"^(\*|(W/)?"[0-9a-f-]{1,64}")$"#)));
}

/// A reference to one of them, or of the entity's own.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/parameters/{name}")})
}

/// The options of an entity that name its fields. Adds them to `parameters`, and gives those of the collection and of a row.
pub(super) fn of_reads(rows: &Rows<'_>, parameters: &mut Members) -> (Vec<Value>, Vec<Value>) {
    let entity = rows.entity.name.as_str();
    let names = |fields: &[usize]| -> Vec<String> {
        fields.iter().map(|at| name_in_list(&rows.field(*at).name)).collect()
    };
    let add = |parameters: &mut Members, option: &str, description: &str, schema: Value, example: Value| {
        let name = format!("{entity}.{option}");
        let parameter = json!({
            "name": format!("${option}"), "in": "query", "description": description, "schema": schema,
            "example": example,
        });
        parameters.add(&name, &parameter);
        reference(&name)
    };
    let readable = names(&rows.readable);
    let choice = choice(readable.iter().map(String::as_str).chain(["*"]));
    let example = readable.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(",");
    let schema = json!({"type": "string", "pattern": format!("^{choice}(,{choice})*$")});
    let select =
        add(parameters, "select", "The fields of the answer, separated by commas", schema, json!(example));
    let expand = rows.relationships.first().map(|first| {
        let names: Vec<&str> = rows.relationships.iter().map(|it| it.name.as_str()).collect();
        let what = format!(
            "Relationships whose rows the answer has beside the fields: {}. Options of each may follow in \
                            parentheses, separated by semicolons",
            names.join(", ")
        );
        add(parameters, "expand", &what, json!({"type": "string"}), json!(first.name))
    });
    let mut of_collection = vec![select.clone()];
    of_collection.extend(expand.clone());
    if let Some(condition) = condition(rows) {
        let what = "A condition on fields: eq ne gt ge lt le, in (1,2), and or not, add sub mul div mod, contains \
                    startswith endswith tolower toupper trim length indexof substring concat, year month day hour minute \
                    second date time, round floor ceiling";
        let schema = json!({"type": "string", "maxLength": 8192});
        of_collection.push(add(parameters, "filter", what, schema, json!(condition)));
    }
    let orderable = names(&rows.orderable);
    if let Some(first) = orderable.first() {
        let to_one = rows.relationships.iter().filter(|it| it.one_row().is_some());
        let paths: Vec<String> =
            to_one.map(|it| format!(r"{}\/[^,']+", escaped(&name_in_list(&it.name)))).collect();
        let field = self::choice(orderable.iter().map(String::as_str));
        let field = if paths.is_empty() { field } else { format!("({field}|{})", paths.join("|")) };
        let term = format!("{field}( (asc|desc))?");
        let what = "Fields, each once, separated by commas, each followed by asc or desc; the key of the row comes last by itself. \
                    A path leads to a field of a row that the row refers to: customer/name";
        let schema = json!({"type": "string", "pattern": format!("^{term}(,{term})*$")});
        of_collection.push(add(parameters, "orderby", what, schema, json!(format!("{first} desc"))));
    }
    of_collection.extend(["first", "after", "count"].map(reference));
    (of_collection, [select].into_iter().chain(expand).collect())
}

/// A condition that the key may ask for.
fn condition(rows: &Rows<'_>) -> Option<String> {
    let on = |at: &usize| {
        let field = rows.field(*at);
        let constant = examples::constant(&field.ty, rows.labels(*at))?;
        Some(format!("{} eq {constant}", name_in_list(&field.name)))
    };
    rows.orderable.iter().find_map(on)
}

/// A regular expression for any of these.
fn choice<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let escaped: Vec<String> = texts.map(escaped).collect();
    format!("({})", escaped.join("|"))
}

fn escaped(text: &str) -> String {
    let special = |c: char| r"\^$.|?*+()[]{}/".contains(c);
    text.chars().fold(String::new(), |mut out, c| {
        if special(c) {
            out.push('\\');
        }
        out.push(c);
        out
    })
}

/// What follows the address of the entity in that of a row, and the parameters that it names; `None` where a client would take
/// a name in it for a step upwards.
pub(super) fn key(rows: &Rows<'_>) -> Option<(String, Vec<Value>)> {
    let (mut path, mut parameters, mut taken) = (String::new(), Vec::new(), Vec::<String>::new());
    for &at in &rows.entity.key {
        let field = rows.field(at);
        if matches!(field.name.as_str(), "" | "." | "..") {
            return None;
        }
        let name = parameter_name(&field.name, &taken);
        path.push_str(&format!("/{}/{{{name}}}", percent::encode(&field.name)));
        let column = Column { ty: &field.ty, labels: rows.labels(at), takes_null: false };
        let mut parameter = json!({"name": name, "in": "path", "required": true, "schema": column.in_path()});
        if let Some(example) = examples::value(&field.ty, rows.labels(at)) {
            parameter["example"] = example;
        }
        parameters.push(parameter);
        taken.push(name);
    }
    Some((path, parameters))
}

/// A name of letters, digits and underscores: generators of clients find no other between braces.
fn parameter_name(field: &str, taken: &[String]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = field.chars().map(plain).collect();
    let name = if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name };
    let numbered = (2..).map(|n| format!("{name}_{n}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken.contains(name)).expect("some number is not taken")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_a_name_of_plain_characters_and_its_own() {
        let name = |field: &str, taken: &[&str]| {
            parameter_name(field, &taken.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(name("id", &[]), "id");
        assert_eq!(name("ID Number", &[]), "ID_Number");
        assert_eq!(name("7 days", &[]), "_7_days");
        assert_eq!(name("a-b", &["a_b", "a_b_2"]), "a_b_3");
        assert_eq!(escaped("a.b (c)"), r"a\.b \(c\)");
    }
}
