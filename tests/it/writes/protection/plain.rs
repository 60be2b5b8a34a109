//! Statement by statement, as key roles, as the tenant's owner and as a superuser.

use super::fixture::{Farm, code, told};

/// What the row of `f.trees` with the key 1 has now.
const NOW: &str = "(select dl_expected_ts from f.trees where id = 1)";
const STALE: &str = "DL409";
const LEFT_OUT: &str = "DL428";
const KEPT: &str = "DL405";

/// Statements on `f.trees`, and the SQLSTATE with which everybody is refused who may write; `NOW` is the version of row 1.
const CASES: &[(&str, &str)] = &[
    ("update f.trees set n = 1, dl_expected_ts = NOW where id = 1", ""),
    ("update f.trees set n = n, dl_expected_ts = dl_expected_ts where id = 1", ""),
    ("update f.trees set dl_expected_ts = NOW where id = 1", ""),
    ("update f.trees set kind = kind, dl_expected_ts = NOW where id = 1", ""),
    ("update f.trees set n = 2 where id = 1", LEFT_OUT),
    ("update f.trees set is_deleted = true where id = 1", LEFT_OUT),
    ("update f.trees set n = 2, dl_expected_ts = null where id = 1", LEFT_OUT),
    ("update f.trees set n = 2, dl_expected_ts = default where id = 1", STALE),
    ("update f.trees set n = 2, dl_expected_ts = '2001-01-01' where id = 1", STALE),
    ("update f.trees set n = 2, dl_expected_ts = NOW - interval '1 microsecond' where id = 1", STALE),
    ("update f.trees set n = 2, dl_expected_ts = NOW + interval '1 microsecond' where id = 1", STALE),
    ("update f.trees set n = 2, dl_expected_ts = 'infinity' where id = 1", STALE),
    ("update f.trees set n = 2, dl_expected_ts = '-infinity' where id = 1", STALE),
    // all or nothing: row 2 has another version
    ("update f.trees set n = 2, dl_expected_ts = NOW where id in (1, 2)", STALE),
    ("update f.trees set n = 2, dl_expected_ts = NOW where id = 99", ""),
    ("update f.trees set n = 2 where false", ""),
    ("delete from f.trees where id = 1", KEPT),
    ("delete from f.trees where id = 99", ""),
    ("insert into f.trees (id, kind) values (1, 'fir') on conflict do nothing", ""),
    (
        "insert into f.trees (id, kind) values (1, 'fir') on conflict (id) do update set kind = excluded.kind",
        LEFT_OUT,
    ),
    (
        "insert into f.trees (id, kind) values (1, 'fir') on conflict (id) do update set kind = excluded.kind, dl_expected_ts = '2001-01-01'",
        STALE,
    ),
    (
        "insert into f.trees (id, kind) values (1, 'fir') on conflict (id) do update set kind = excluded.kind, dl_expected_ts = NOW",
        "",
    ),
    (
        "merge into f.trees t using (values (1)) s (id) on s.id = t.id when matched then update set n = 3",
        LEFT_OUT,
    ),
    (
        "merge into f.trees t using (values (1)) s (id) on s.id = t.id when matched then update set n = 3, dl_expected_ts = '2001-01-01'",
        STALE,
    ),
    (
        "merge into f.trees t using (values (1)) s (id) on s.id = t.id when matched then update set n = 3, dl_expected_ts = t.dl_expected_ts",
        "",
    ),
    ("merge into f.trees t using (values (1)) s (id) on s.id = t.id when matched then delete", KEPT),
    ("with w as (update f.trees set n = 4 where id = 1 returning 1) select * from w", LEFT_OUT),
    ("with w as (delete from f.trees where id = 1 returning 1) select * from w", KEPT),
    ("update f.trees set is_deleted = true, dl_expected_ts = NOW where id = 1", ""),
    ("update f.trees set is_deleted = false, dl_expected_ts = NOW where id = 1", ""),
];

/// The owner is filtered by FORCE like everybody, and a superuser may say that triggers do not fire.
#[tokio::test]
async fn every_writer_says_which_version_it_knows() {
    let farm = Farm::open().await;
    for who in ["every", "owner", "superuser", "replica"] {
        let mut conn = farm.connect(if who == "replica" { "superuser" } else { who }).await;
        if who == "replica" {
            assert_eq!(code(&mut conn, "set session_replication_role = replica").await, "");
        }
        for (statement, expected) in CASES {
            let statement = statement.replace("NOW", NOW);
            let before = farm.rows("select * from f.trees order by id").await;
            assert_eq!(code(&mut conn, &statement).await, *expected, "{who}: {statement}");
            let after = farm.rows("select * from f.trees order by id").await;
            assert!(expected.is_empty() || before == after, "{who}: {statement}");
            for (old, new) in before.iter().zip(&after) {
                let version = |row: &serde_json::Value| row["dl_expected_ts"].as_str().map(str::to_owned);
                let same = |name: &str| old[name] == new[name];
                let moved = version(old) < version(new);
                assert!(
                    moved || version(old) == version(new) && same("n") && same("kind"),
                    "{who}: {statement}"
                );
            }
        }
    }
    let mut owner = farm.connect("owner").await;
    assert_eq!(code(&mut owner, "truncate f.trees").await, KEPT);
    assert_eq!(code(&mut owner, "truncate f.farms cascade").await, KEPT);
}

#[tokio::test]
async fn a_new_row_has_a_version_of_its_own_whatever_was_given() {
    let farm = Farm::open().await;
    let mut owner = farm.connect("owner").await;
    for (id, statement) in [
        (11, "insert into f.trees (id, kind) values (11, 'fir')"),
        (12, "insert into f.trees (id, kind, dl_expected_ts) values (12, 'fir', 'infinity')"),
        (13, "insert into f.trees (id, kind, dl_expected_ts) values (13, 'fir', null)"),
        (14, "insert into f.trees (id, kind, dl_expected_ts) values (14, 'fir', '2001-01-01')"),
        (15, "copy f.trees (id, kind, dl_expected_ts) from program 'printf \"15\\tfir\\t2001-01-01\\n\"'"),
    ] {
        let mut superuser = farm.connect("superuser").await;
        let conn = if id == 15 { &mut superuser } else { &mut owner };
        let from = farm.rows("select clock_timestamp()::text v").await;
        assert_eq!(code(conn, statement).await, "", "{statement}");
        let (from, version) = (from[0]["v"].as_str().expect("a text").to_owned(), farm.version(id).await);
        let until = farm.rows("select clock_timestamp()::text v").await;
        let fresh = format!(
            "select '{from}'::timestamptz <= '{version}' and '{version}' <= '{}'::timestamptz v",
            until[0]["v"].as_str().expect("a text")
        );
        assert_eq!(farm.rows(&fresh).await[0]["v"], true, "{statement}: {version}");
    }
    // who only makes rows needs no right on the version
    let mut maker = farm.connect("maker").await;
    assert_eq!(code(&mut maker, "insert into f.trees (id, kind) values (16, 'yew')").await, "");
    assert_eq!(
        code(&mut maker, "insert into f.trees (id, kind, dl_expected_ts) values (17, 'yew', now())").await,
        "42501"
    );
}

/// Infinity, from before the table was protected, is a version like any other, and the last one that there is no way back
/// from: after it time goes on.
#[tokio::test]
async fn infinity_is_no_way_around() {
    let farm = Farm::open().await;
    let mut superuser = farm.connect("superuser").await;
    let plant = "alter table f.trees disable trigger user; update f.trees set dl_expected_ts = 'infinity' where id = 1; \
                 alter table f.trees enable always trigger \"~dl_1_echo\", enable always trigger \"~dl_2_stamp\", \
                 enable always trigger \"~dl_3_keep\", enable always trigger \"~dl_4_keep_all\", enable trigger a_touch, enable trigger zz_touch";
    assert_eq!(code(&mut superuser, &format!("begin; {plant}; commit")).await, "");
    let mut every = farm.connect("every").await;
    for (statement, expected) in [
        ("update f.trees set n = 9 where id = 1", LEFT_OUT),
        ("update f.trees set n = 9, dl_expected_ts = null where id = 1", LEFT_OUT),
        ("update f.trees set n = 9, dl_expected_ts = '2001-01-01' where id = 1", STALE),
        ("update f.trees set n = 9, dl_expected_ts = 'infinity' where id = 1", ""),
        ("update f.trees set n = 9, dl_expected_ts = 'infinity' where id = 1", STALE),
    ] {
        assert_eq!(code(&mut every, statement).await, expected, "{statement}");
    }
}

/// A version from the future goes on from there.
#[tokio::test]
async fn a_version_moves_forward_when_the_clock_does_not() {
    let farm = Farm::open().await;
    let mut superuser = farm.connect("superuser").await;
    let plant = "begin; alter table f.trees disable trigger \"~dl_1_echo\", disable trigger \"~dl_2_stamp\"; \
                 update f.trees set dl_expected_ts = '2099-01-01 00:00:00.000007Z' where id = 1; \
                 alter table f.trees enable always trigger \"~dl_1_echo\", enable always trigger \"~dl_2_stamp\"; commit";
    assert_eq!(code(&mut superuser, plant).await, "");
    let mut every = farm.connect("every").await;
    for n in 8..12 {
        let statement = format!("update f.trees set n = {n}, dl_expected_ts = {NOW} where id = 1");
        assert_eq!(code(&mut every, &statement).await, "");
        let is = farm
            .rows("select extract(microseconds from dl_expected_ts)::int v from f.trees where id = 1")
            .await;
        assert_eq!(is[0]["v"], n);
    }
}

/// Whoever may change a field may say the version, and read it with the key; nobody else got anything.
#[tokio::test]
async fn rights_to_change_bring_what_every_update_says() {
    let farm = Farm::open().await;
    for (who, statement, expected) in [
        ("few", "update f.trees set kind = 'pine', dl_expected_ts = NOW where id = 1", ""),
        ("few", "select id, dl_expected_ts from f.trees", ""),
        ("few", "select n from f.trees", "42501"),
        ("few", "update f.trees set n = 1, dl_expected_ts = NOW where id = 1", "42501"),
        ("few", "update f.trees set is_deleted = true, dl_expected_ts = NOW where id = 1", "42501"),
        ("few", "delete from f.trees where id = 1", "42501"),
        ("reader", "select id, kind, dl_expected_ts, is_deleted from f.trees", ""),
        ("reader", "update f.trees set dl_expected_ts = dl_expected_ts", "42501"),
        ("maker", "select dl_expected_ts from f.trees", "42501"),
        ("every", "select dl.protect_echo()", "42501"),
        ("every", "truncate f.trees", "42501"),
        ("every", "alter table f.trees disable trigger all", "42501"),
        ("every", "set session_replication_role = replica", "42501"),
    ] {
        let mut conn = farm.connect(who).await;
        assert_eq!(code(&mut conn, &statement.replace("NOW", NOW)).await, expected, "{who}: {statement}");
    }
}

#[tokio::test]
async fn messages_say_what_to_do() {
    let farm = Farm::open().await;
    let mut every = farm.connect("every").await;
    let mut all = String::new();
    for statement in [
        "update f.trees set n = 1 where id = 1",
        "update f.trees set n = 1, dl_expected_ts = null where id = 1",
        "update f.trees set n = 1, dl_expected_ts = '2001-01-01' where id = 1",
        "delete from f.nests",
    ] {
        all += &format!("{statement}\n{}\n", told(&mut every, statement).await);
    }
    insta::assert_snapshot!(all, @r"
    update f.trees set n = 1 where id = 1
    DL428: an update of f.trees has to say which version of the row it knows. Set dl_expected_ts to the value that was read with the row.
    update f.trees set n = 1, dl_expected_ts = null where id = 1
    DL428: an update of f.trees has to say which version of the row it knows. Set dl_expected_ts to the value that was read with the row, not to NULL.
    update f.trees set n = 1, dl_expected_ts = '2001-01-01' where id = 1
    DL409: the row of f.trees is no longer the one that was read. Read it again, and set dl_expected_ts to the value that it has now.
    delete from f.nests
    DL405: rows of f.nests are neither deleted nor moved to another partition. To delete one set gone to true, and dl_expected_ts to the value that was read with it.
    ");
}
