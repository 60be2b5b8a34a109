//! Plans and what of them stands in a status.

use rowgate_sql::ddl::roles::{self, Kind};
use rowgate_sql::text::Ident;

use super::*;
use crate::plan::Statement;

fn drop_of(name: &str) -> Sql {
    roles::drop(&Ident::new(name).expect("a name"))
}

fn op(login: As, statements: Vec<Sql>) -> Op {
    Op::new("an operation", login, statements.into_iter().map(Statement::from).collect())
}

#[test]
fn statements_stand_in_order_behind_what_they_are_for() {
    let shown = Shown {
        remarks: vec!["first\nthis".to_owned()],
        ops: vec![
            op(As::Operator, vec![drop_of("a"), drop_of("b")]),
            op(As::Owner, Vec::new()),
            op(As::Keys, vec![drop_of("c")]),
        ],
        later: vec!["then the rest".to_owned()],
    };
    assert_eq!(shown.n_statements(), 3);
    assert_eq!(
        shown.lines(),
        [
            "-- first this",
            "-- as Rowgate's login: an operation",
            "drop role if exists \"a\";",
            "drop role if exists \"b\";",
            "-- as the login that makes roles of keys: an operation",
            "drop role if exists \"c\";",
            "-- then the rest",
        ]
    );
}

#[test]
fn no_verifier_is_shown() {
    let verifier = "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy";
    let [role, auth] = ["key_1", "t1_auth"].map(|name| Ident::new(name).expect("a name"));
    let sql = [
        roles::create(&role, Kind::Login, Some(verifier)),
        roles::create_key(&role, verifier, &auth),
        roles::set_verifier(&role, verifier),
    ];
    let lines = Shown { ops: vec![op(As::Keys, sql.into())], ..Shown::default() }.lines();
    assert_eq!(
        lines[1..],
        [
            "create role \"key_1\" login noinherit password E'(hidden)';",
            "create role \"key_1\" login noinherit password E'(hidden)' role \"t1_auth\";",
            "alter role \"key_1\" password E'(hidden)';",
        ]
    );
    assert_eq!(hidden(verifier), HIDDEN);
    assert_eq!(hidden(&format!("{verifier} and {verifier}")), "(hidden) and (hidden)");
}

#[test]
fn a_status_holds_so_many_statements_and_bytes() {
    let many = Shown { ops: vec![op(As::Owner, vec![drop_of("a"); MAX_STATEMENTS + 7])], ..Shown::default() };
    let lines = many.lines();
    assert_eq!(many.n_statements(), MAX_STATEMENTS + 7);
    // the operation, its statements, and what is left out
    assert_eq!(lines.len(), MAX_STATEMENTS + 2);
    assert_eq!(lines[lines.len() - 1], "-- 7 more statements are left out: a status holds no more");

    let long = "ü".repeat(31);
    let members: Vec<Ident> = (0..200).map(|_| Ident::new(long.as_str()).expect("62 bytes")).collect();
    let grant = roles::grant(&members[0], &members, roles::Membership::Set);
    let lines = Shown { ops: vec![op(As::Owner, vec![grant; 50])], ..Shown::default() }.lines();
    let n_bytes: usize = lines.iter().map(String::len).sum();
    assert!(n_bytes < MAX_BYTES + MAX_REMARK_BYTES, "{n_bytes}");
    assert!(lines[1].ends_with(" ...") && lines[1].len() <= MAX_STATEMENT_BYTES + 4, "{}", lines[1]);
    assert!(lines[lines.len() - 1].contains(" more statements are left out"));

    let remarks = vec!["x".repeat(2 * MAX_REMARK_BYTES); MAX_REMARKS + 1];
    let lines = Shown { remarks, ..Shown::default() }.lines();
    assert_eq!(lines.len(), MAX_REMARKS + 1);
    assert_eq!(lines[MAX_REMARKS], "-- 1 more remarks are left out");
    assert!(lines[0].len() < MAX_REMARK_BYTES + 10);
}
