//! What the rules of the resources refuse: nothing changes, whoever refuses it.

use rowgate_tests::stage::{DONE, On};

use crate::reconcile::acme::{SPEC, key, tenant};
use crate::reconcile::scenarios::{NOTES, acme, done};

scenarios!(what_breaks_a_rule_is_refused_with_its_reason_and_nothing_changes);

async fn what_breaks_a_rule_is_refused_with_its_reason_and_nothing_changes(on: On) {
    let mut stage = acme(on).await;
    let before = stage.status("Tenant", "acme").await;
    let (_, acme) =
        tenant("acme", SPEC).split_once("---\n").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("two");
    for (manifest, part) in [
        (acme.replace("\nspec:\n", "\nspec:\n  slug: other\n"), "slug"),
        (
            acme.replace(
                "  entities:\n",
                "  entities:\n    - {name: 1st, source: {schema: app, object: notes}}\n",
            ),
            "name",
        ),
        (key("north", "acme", "claims: {region: south}"), "claims"),
        (key("late", "acme", "claims: {region: south}"), "claims"),
    ] {
        let said = stage.refused(&manifest).await;
        assert!(said.contains(part), "{said}");
    }
    // a look that surely came after them: it made another key
    stage.put(&key("spare", "acme", "")).await;
    stage.told("ApiKey", "spare", 1, DONE).await;
    done(&stage).await;
    let after = stage.status("Tenant", "acme").await;
    assert_eq!(
        (&after["observedGeneration"], &after["slug"]),
        (&before["observedGeneration"], &before["slug"])
    );
    assert_eq!(stage.status("ApiKey", "north").await["observedGeneration"], 1);
    assert!(stage.secret("late").await.is_none());
    assert!(stage.opens(&stage.key("north").await, NOTES).await);
}
