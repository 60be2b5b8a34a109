//! What a warm read costs: key statement and data statement, and once a second the watch statement.

use std::time::Duration;

use tokio::time::Instant;

use super::Hand;

/// Seen to fail with a watch statement that is never sent.
#[tokio::test]
async fn one_request_a_second_asks_whether_the_tables_changed() {
    let hand = Hand::new(&["log_statement=all"], 3600).await;
    let origin = hand.world.url();
    assert!(!hand.get(&origin, "others").await.rows().is_empty());
    let (start, mut n_asked) = (Instant::now(), 0);
    let before = Counts::of(&hand);
    while start.elapsed() < Duration::from_millis(2_500) {
        assert!(!hand.get(&origin, "others").await.rows().is_empty());
        n_asked += 1;
    }
    let n_seconds = usize::try_from(start.elapsed().as_secs()).expect("a few");
    let after = Counts::of(&hand);
    assert_eq!((after.key - before.key, after.data - before.data), (n_asked, n_asked));
    let n_watches = after.watch - before.watch;
    assert!((2..=n_seconds + 1).contains(&n_watches), "{n_watches} in {n_seconds} s");
}

/// Executions of prepared statements by requests; those of everything else have other names.
struct Counts {
    key: usize,
    watch: usize,
    data: usize,
}

impl Counts {
    fn of(hand: &Hand) -> Counts {
        let log = hand.server.log();
        let names: Vec<&str> =
            log.lines().filter_map(|line| line.split_once("LOG:  execute ")?.1.split(':').next()).collect();
        let count = |is: &dyn Fn(&str) -> bool| names.iter().filter(|name| is(name)).count();
        let numbered =
            |name: &str| name.strip_prefix('s').is_some_and(|number| number.parse::<u64>().is_ok());
        Counts {
            key: count(&|name| name == "key"),
            watch: count(&|name| name == "watch"),
            data: count(&numbered),
        }
    }
}
