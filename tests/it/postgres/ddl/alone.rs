//! The data plane by itself: nobody reconciles, and still no request that starts 2 s after a change sees what was before.

use rowgate_tests::client::Reply;
use rowgate_tests::servers::postgres::execute;
use tokio::time::Instant;

use super::Now::{self, Refused, Row};
use super::{Hand, begins};

struct Case {
    ddl: &'static str,
    /// Path, and its answer 2 s later.
    then: &'static [(&'static str, Now)],
    /// What may be answered besides the truth before and the truth after; rows of `b` where security was taken away.
    meanwhile: &'static [u16],
}

const FIRST: &str = "items?$first=1";

const CASES: &[Case] = &[
    Case {
        ddl: "alter table app.items alter n type text using 'n' || n",
        then: &[(FIRST, Row(r#"{"id":2,"owner":"a","label":"label","n":"n2","amount":2.00,"mood":"ok"}"#))],
        meanwhile: &[],
    },
    Case {
        ddl: "alter table app.items drop column label",
        then: &[
            (FIRST, Row(r#"{"id":2,"owner":"a","n":"n2","amount":2.00,"mood":"ok"}"#)),
            ("items?$select=label", Refused(400, "UnknownField")),
            ("items?$filter=label%20eq%20'label'", Refused(400, "UnknownField")),
        ],
        meanwhile: &[],
    },
    Case {
        ddl: "alter table app.items rename amount to total",
        then: &[
            (FIRST, Row(r#"{"id":2,"owner":"a","n":"n2","mood":"ok"}"#)),
            ("items?$select=amount", Refused(400, "UnknownField")),
            ("items?$select=total", Refused(400, "UnknownField")),
        ],
        meanwhile: &[],
    },
    Case {
        ddl: "alter table app.items add extra int default 7; alter type app.mood rename value 'ok' to 'fine'",
        then: &[
            (FIRST, Row(r#"{"id":2,"owner":"a","n":"n2","mood":"fine"}"#)),
            ("items?$select=extra", Refused(400, "UnknownField")),
        ],
        meanwhile: &[],
    },
    Case {
        ddl: "alter table app.items drop column n; alter table app.items add n int",
        then: &[
            (FIRST, Row(r#"{"id":2,"owner":"a","mood":"fine"}"#)),
            ("items?$select=n", Refused(400, "UnknownField")),
        ],
        meanwhile: &[],
    },
    Case {
        ddl: "alter view app.shown owner to current_user",
        then: &[
            (FIRST, Row(r#"{"id":2,"owner":"a","mood":"fine"}"#)),
            ("shown", Refused(503, "Unavailable")),
            ("others", Row(r#"{"id":2,"owner":"a"}"#)),
        ],
        meanwhile: &[],
    },
    Case {
        ddl: "alter table app.items disable row level security",
        then: &[(FIRST, Refused(503, "Unavailable")), ("shown", Refused(503, "Unavailable"))],
        meanwhile: &[],
    },
    Case {
        ddl: "alter table app.items enable row level security, force row level security",
        then: &[
            (FIRST, Row(r#"{"id":2,"owner":"a","mood":"fine"}"#)),
            ("shown?$first=1", Row(r#"{"id":2,"owner":"a"}"#)),
        ],
        meanwhile: &[503],
    },
    Case {
        ddl: "create table app.bare (id int, owner text); insert into app.bare values (1, 'c'); \
              create or replace view app.shown as select id, owner from app.bare",
        then: &[
            ("shown", Refused(503, "Unavailable")),
            (FIRST, Row(r#"{"id":2,"owner":"a","mood":"fine"}"#)),
        ],
        meanwhile: &[],
    },
    Case {
        ddl: "create table app.fresh (id int primary key, owner text not null); insert into app.fresh values (1, 'b'); \
              alter table app.others rename to old; alter table app.fresh rename to others",
        then: &[("others", Refused(503, "Unavailable")), ("items?$select=id&$first=1", Row(r#"{"id":2}"#))],
        meanwhile: &[503],
    },
    Case {
        ddl: "drop view app.shown; drop table app.items; create table app.items (id int primary key, owner text, n int); \
              insert into app.items values (1, 'b', 1)",
        then: &[(FIRST, Refused(503, "Unavailable")), ("shown", Refused(503, "Unavailable"))],
        meanwhile: &[503],
    },
];

/// Statistics of the catalog, as autovacuum leaves them, change how PostgreSQL reads it. Seen to fail with a watch statement that
/// is never sent, and where the expressions of generated columns are read as defaults are.
#[tokio::test]
async fn a_request_that_starts_two_seconds_after_a_change_sees_it() {
    let mut hand = Hand::new(&[], 3600).await;
    execute(&mut hand.server.connect("hand").await, "analyze").await;
    let (busy, idle) = (hand.world.serve().await, hand.world.serve().await);
    hand.world.kill().await;
    let mut owner = hand.owner().await;
    for Case { ddl, then, meanwhile } in CASES {
        for (path, _) in *then {
            // so that the idle one has a catalog, a key and prepared statements to be wrong with
            hand.get(&idle, path).await;
        }
        let before: Vec<Reply> = vec![hand.get(&busy, then[0].0).await];
        execute(&mut owner, ddl).await;
        let committed = Instant::now();
        let judge = |reply: &Reply| {
            let status = reply.status.as_u16();
            let after = match &then[0].1 {
                Row(row) => status == 200 && begins(reply, row),
                Refused(status, _) => reply.status.as_u16() == *status,
            };
            let was = before.iter().any(|before| before.body == reply.body && before.status == reply.status);
            let leaves = ddl.contains("disable") && status == 200;
            let allowed = was
                || after
                || leaves
                || meanwhile.contains(&status)
                || ddl.contains("bare") && status == 200;
            assert!(allowed, "{ddl}: {reply:?}");
        };
        hand.load(&busy, then[0].0, committed, judge).await;
        for (path, now) in *then {
            now.check(&hand.get(&idle, path).await, &format!("{ddl}; {path}, idle"));
            now.check(&hand.get(&busy, path).await, &format!("{ddl}; {path}, busy"));
        }
    }
}
