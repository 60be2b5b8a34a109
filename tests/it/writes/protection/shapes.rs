//! Foreign keys, partitions and views around a protected table.

use rowgate_tests::wait::until;

use super::fixture::{Farm, code};

/// A cascade says no version, and deletes; over no rows it does neither.
#[tokio::test]
async fn a_cascade_is_refused_as_what_it_does() {
    let farm = Farm::open().await;
    for who in ["every", "owner"] {
        let mut conn = farm.connect(who).await;
        for (statement, expected) in [
            ("delete from f.farms where id = 1", "DL405"),
            ("delete from f.farms where id = 2", "DL428"),
            ("update f.farms set id = 30 where id = 3", "DL428"),
        ] {
            assert_eq!(code(&mut conn, statement).await, expected, "{who}: {statement}");
        }
    }
    let mut every = farm.connect("every").await;
    for statement in ["delete from f.farms where id = 4", "update f.farms set id = 50 where id = 5"] {
        assert_eq!(code(&mut every, statement).await, "", "{statement}");
    }
    assert_eq!(farm.rows("select * from f.nests").await.len(), 3);
}

/// PostgreSQL moves a row to another partition by deleting it.
#[tokio::test]
async fn partitions_are_protected_and_rows_stay_in_theirs() {
    let farm = Farm::open().await;
    for who in ["every", "owner", "superuser"] {
        let mut conn = farm.connect(who).await;
        for (statement, expected) in [
            ("update f.places set note = 'x' where region = 's'", "DL428"),
            ("update f.places set note = 'x', dl_expected_ts = '2001-01-01' where region = 's'", "DL409"),
            ("update f.places set note = 'x', dl_expected_ts = dl_expected_ts where region = 's'", ""),
            (
                "update f.places set region = 'n', id = 2, dl_expected_ts = dl_expected_ts where region = 's'",
                "DL405",
            ),
            ("update f.places set id = 2, dl_expected_ts = dl_expected_ts where region = 's' and id = 1", ""),
            ("update f.places set id = 1, dl_expected_ts = dl_expected_ts where region = 's' and id = 2", ""),
            ("delete from f.places", "DL405"),
        ] {
            assert_eq!(code(&mut conn, statement).await, expected, "{who}: {statement}");
        }
    }
    let mut owner = farm.connect("owner").await;
    for part in ["places", "places_n", "places_s", "places_s1"] {
        assert_eq!(code(&mut owner, &format!("truncate f.{part}")).await, "DL405", "{part}");
        assert_eq!(code(&mut owner, &format!("update f.{part} set note = 'y'")).await, "DL428", "{part}");
        assert_eq!(code(&mut owner, &format!("delete from f.{part}")).await, "DL405", "{part}");
    }
}

/// PostgreSQL gives it all triggers but the one for TRUNCATE, which comes with the next look.
#[tokio::test]
async fn a_partition_that_is_made_later_is_protected_too() {
    let farm = Farm::open().await;
    let mut owner = farm.connect("owner").await;
    let make = "create table f.places_w partition of f.places for values in ('w'); insert into f.places values ('w', 1, 'c')";
    assert_eq!(code(&mut owner, make).await, "");
    for (statement, expected) in [
        ("update f.places_w set note = 'x'", "DL428"),
        ("update f.places_w set note = 'x', dl_expected_ts = '2001-01-01'", "DL409"),
        ("delete from f.places_w", "DL405"),
    ] {
        assert_eq!(code(&mut owner, statement).await, expected, "{statement}");
    }
    until("a TRUNCATE that is refused", async || {
        let told = code(&mut owner, "begin; truncate f.places_w; rollback").await;
        (told == "DL405").then_some(())
    })
    .await;
}

/// What goes through a view is a write to its table.
#[tokio::test]
async fn a_view_is_no_way_around() {
    let farm = Farm::open().await;
    let mut every = farm.connect("every").await;
    assert_eq!(code(&mut every, "update f.shown set n = 5 where id = 1").await, "DL428");
    assert_eq!(code(&mut every, "delete from f.shown where id = 1").await, "DL405");
    assert_eq!(code(&mut every, "select id from f.shown").await, "");
}

/// One MERGE that says the version in one of its actions has it taken as said in the others: to PostgreSQL the column is
/// one of those that the statement sets. It is what `set dl_expected_ts = dl_expected_ts` is, which anybody may write.
#[tokio::test]
async fn a_merge_says_the_version_for_all_its_actions() {
    let farm = Farm::open().await;
    let mut every = farm.connect("every").await;
    let merge = "merge into f.trees t using (values (1), (2)) s (id) on s.id = t.id \
                 when matched and s.id = 1 then update set n = 7, dl_expected_ts = t.dl_expected_ts \
                 when matched then update set n = 8";
    let before = [farm.version(1).await, farm.version(2).await];
    assert_eq!(code(&mut every, merge).await, "");
    let after = [farm.version(1).await, farm.version(2).await];
    assert!(before.iter().zip(&after).all(|(before, after)| before < after), "{before:?} {after:?}");
}
