//! Whoever reconciles is killed around the end of a script's transaction: the script runs once, and none is lost.

use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::steps::Step;

use super::{FIRST, market, ran, runs};
use crate::reconcile::scenarios::failures::crash::{cut_off, wish};

scenarios!(a_script_that_is_cut_off_anywhere_runs_once);

/// Of the steps of a script: its record is staged, it has run, its record is written, and all of that stands.
fn chosen(steps: &[Step]) -> Vec<Step> {
    let is_script = |step: &Step| step.called == "SQL do";
    let at = steps.iter().position(is_script).unwrap_or_else(|| panic!("no script among {steps:#?}"));
    let staged = steps[..at].iter().rev().find(|step| step.called.contains("dl.staged"));
    let after = |part: &str| steps[at..].iter().find(|step| step.called.to_lowercase().contains(part));
    let chosen = [staged, Some(&steps[at]), after("dl.publish"), after("commit")];
    chosen.map(|step| step.unwrap_or_else(|| panic!("a step is missing among {steps:#?}")).clone()).to_vec()
}

async fn a_script_that_is_cut_off_anywhere_runs_once(on: On) {
    let names: Vec<String> = (1..8).map(|n| n.to_string()).collect();
    let scripts: Vec<String> = names.iter().map(|name| ran(name)).collect();
    let listed = |n: usize| {
        let keys: Vec<String> = names[..n].iter().map(|name| format!("s{name}")).collect();
        let text = |(n, key): (usize, _)| (key, if n == 0 { FIRST } else { scripts[n].as_str() });
        let texts: Vec<(&str, &str)> = keys.iter().map(String::as_str).enumerate().map(text).collect();
        market(&texts, &keys.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut stage = Stage::with(on, wish(), &listed(1)).await;
    stage.told("Tenant", "market", 1, DONE).await;
    stage.steps().begin(None);
    stage.put(&listed(2)).await;
    stage.told("Tenant", "market", 2, DONE).await;
    let steps = chosen(&stage.steps().end());
    let mut conn = stage.server.connect("market").await;
    for (n, step) in (3..).zip(&steps) {
        stage.steps().begin(Some(step.clone()));
        stage.put(&listed(n)).await;
        cut_off(&mut stage, step).await;
        stage.start().await;
        stage.told("Tenant", "market", i64::try_from(n).expect("a few"), DONE).await;
        let (written, noted) = runs(&mut conn).await;
        assert_eq!(written, names[..n].join(" "), "{step:?}");
        assert_eq!(noted.replace('s', ""), written, "{step:?}");
    }
}
