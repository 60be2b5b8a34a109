//! A policy that reads another table reads it with the caller's grants: who lacks them is told, by name.

use rowgate_tests::servers::postgres::{attempt, connect};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::world::status::ready;

use super::acme;
use crate::reconcile::acme::{SPEC, key, tenant};

scenarios!(a_policy_that_a_key_cannot_read_is_told_with_table_and_key);

/// Notes that are hidden too, by whichever column of `app.hidden`.
fn spec(column: &str, entity: &str, permission: &str) -> String {
    let policy = format!("expression: 'exists (select from app.hidden h where h.{column} is not null)'");
    let own = "{name: admins, roles: [datalake_user], expression: 'true'}";
    let spec = SPEC.replace(own, &format!("{{name: shown, roles: [datalake_user], {policy}}}"));
    assert_ne!(spec, SPEC);
    let permissions = "    claims: {region: nowhere}\n";
    format!("{}{entity}", spec.replace(permissions, &format!("{permission}{permissions}")))
}

fn north(hidden: &str) -> String {
    let scope = format!(
        "scope: {{permissions: [{{entity: notes, actions: [read], fields: {{include: ['*']}}}}{hidden}]}}"
    );
    key("north", "acme", &format!("claims: {{region: north}}, {scope}"))
}

async fn north_reads(stage: &Stage) -> bool {
    let mut conn = connect(&stage.role("north", "acme").await).await.expect("the key's role");
    attempt(&mut conn, "select id from app.notes").await.is_ok()
}

/// The policy is about `datalake_user` alone, and still PostgreSQL refuses everybody who may not read the table.
async fn a_policy_that_a_key_cannot_read_is_told_with_table_and_key(on: On) {
    const ENTITY: &str =
        "    - {name: hidden, source: {schema: app, object: hidden}, rowLevelSecurity: {none: true}}\n";
    const SHARED: &str = "      - {entity: hidden, actions: [read]}\n";
    let mut stage = acme(on).await;
    assert!(north_reads(&stage).await);

    stage.remove("ApiKey", "south").await;
    stage.gone("ApiKey", "south").await;
    stage.put(&tenant("acme", &spec("id", "", ""))).await;
    let told = stage.told("Tenant", "acme", 2, "PolicyUnreadable").await;
    let (_, message) = ready(&told);
    for part in [
        "entities[notes]: policy shown reads app.hidden (id)",
        "key north",
        "key web, datalake_user",
        "dl.claim",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    stage.told("ApiKey", "north", 1, "PolicyUnreadable").await;
    assert!(!north_reads(&stage).await, "as PostgreSQL has it");

    // readable for the shared permissions, and for north another column than the policy's
    let only_id = ", {entity: hidden, actions: [read], fields: {include: [id]}}";
    stage.put(&north(only_id)).await;
    stage.put(&tenant("acme", &spec("word", ENTITY, SHARED))).await;
    let told = stage.told("ApiKey", "north", 2, "PolicyUnreadable").await;
    assert!(ready(&told).1.contains("app.hidden (word), which key north may not"), "{told}");
    let told = stage.told("Tenant", "acme", 3, "PolicyUnreadable").await;
    assert!(!ready(&told).1.contains("key web"), "{told}");
    assert!(!north_reads(&stage).await);

    stage.put(&tenant("acme", &spec("id", ENTITY, SHARED))).await;
    stage.told("Tenant", "acme", 4, DONE).await;
    stage.told("ApiKey", "north", 2, DONE).await;
    assert!(north_reads(&stage).await);
}
