//! What is allowed, what is refused and where, and that nothing panics.

use super::{Refusal, Rules, check};

fn sql(text: &str) -> Result<String, Refusal> {
    check(text, Rules::SqlEndpoint).map(|it| it.sql().as_str().to_owned())
}

#[test]
fn probe() {
    let file = std::env::var("PROBE").unwrap_or_default();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        eprintln!("{line}\n   {:?}", sql(line).map_err(|it| format!("[{}] {it}", it.rule)));
        if line.to_lowercase().contains("for json") {
            let vars = [
                vec![crate::for_json::Variable::new("Id", "integer")],
                crate::for_json::Variable::of_every_event(),
            ]
            .concat();
            eprintln!(
                "   {:?}",
                crate::for_json::translate(line, &vars)
                    .map(|it| (it.parameters().to_vec(), it.sql().as_str().to_owned()))
                    .map_err(|it| format!("[{}] {it}", it.rule))
            );
        }
    }
}
