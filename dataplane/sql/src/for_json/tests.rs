//! Which cases of the table are refused; what the others give is for a real PostgreSQL (tests/it/webhooks).

use super::{Variable, translate};

const CASES: &str = include_str!("../../../../tests/it/webhooks/for_json.txt");

fn variables() -> Vec<Variable> {
    let mut variables = vec![Variable::new("Id", "integer")];
    variables.extend(Variable::of_every_event());
    variables
}

#[test]
fn the_table_s_refusals_come_from_parsing() {
    let mut misses = Vec::new();
    let lines: Vec<&str> = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for case in lines.chunks(2) {
        let [query, expected] = case else { panic!("a case has two lines: {case:?}") };
        let given = translate(query, &variables());
        let refused = given.as_ref().err().map(|refusal| refusal.rule);
        if refused != expected.strip_prefix("! ") {
            misses.push(format!("{query}\n  {expected}\n  {given:?}"));
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn an_unknown_variable_names_those_there_are() {
    let refusal = translate("select @x as a for json path", &variables()).expect_err("x is no variable");
    assert_eq!(
        refusal.to_string(),
        "line 1, column 8: @x is not a variable here; the variables are @Id, @dl_op, @dl_table, @dl_schema, \
         @dl_rowKeyJson"
    );
}

#[test]
fn key_columns_have_the_types_of_their_table() {
    let types = [
        "timestamp with time zone",
        "character varying(10)",
        "numeric(10,2)",
        "app.status",
        "app.\"Odd Type\"",
        "integer[]",
        "\"char\"",
        "uuid",
        "bigint",
    ];
    for ty in types {
        let query = translate("select @k as a for json path", &[Variable::new("k", ty)]).expect(ty);
        let cast = format!("($1::{ty})").to_lowercase();
        assert!(query.sql().as_str().to_lowercase().contains(&cast), "{ty}: {:?}", query.sql());
    }
}

#[test]
fn names_that_differ_in_case_only_are_told_apart() {
    let both = [Variable::new("id", "integer"), Variable::new("Id", "text")];
    let query = translate("select @Id as a, @id as b for json path", &both).expect("both are there");
    assert_eq!(query.parameters(), ["Id", "id"]);
    assert!(translate("select @ID as a for json path", &both).is_err());
}
