//! A policy that reads another table reads it with the caller's grants: who lacks them is told, by name.

use rowgate_tests::postgres::{attempt, connect};
use rowgate_tests::reconciler::{DONE, Reconciler, ready};

use super::{SPEC, acme, key, tenant};

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

async fn north_reads(reconciler: &Reconciler) -> bool {
    let mut conn = connect(&reconciler.key("north", "acme")).await.expect("the key's role");
    attempt(&mut conn, "select id from app.notes").await.is_ok()
}

/// The policy is about `datalake_user` alone, and still PostgreSQL refuses everybody who may not read the table.
#[tokio::test]
async fn a_policy_that_a_key_cannot_read_is_told_with_table_and_key() {
    const ENTITY: &str =
        "    - {name: hidden, source: {schema: app, object: hidden}, rowLevelSecurity: {none: true}}\n";
    const SHARED: &str = "      - {entity: hidden, actions: [read]}\n";
    let reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    assert!(north_reads(&reconciler).await);

    reconciler.write("keys.yaml", &format!("{}{}", key("web", "acme", ""), north("")));
    reconciler.write("acme.yaml", &tenant("acme", &spec("id", "", "")));
    let told = reconciler.told("tenant", "acme", 2, "PolicyUnreadable").await;
    let (_, message) = ready(&told);
    for part in [
        "entities[notes]: policy shown reads app.hidden (id)",
        "key north",
        "key web, datalake_user",
        "dl.claim",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    reconciler.told("apikey", "north", 1, "PolicyUnreadable").await;
    assert!(!north_reads(&reconciler).await, "as PostgreSQL has it");

    // readable for the shared permissions, and for north another column than the policy's
    let only_id = ", {entity: hidden, actions: [read], fields: {include: [id]}}";
    reconciler.write("keys.yaml", &format!("{}{}", key("web", "acme", ""), north(only_id)));
    reconciler.write("acme.yaml", &tenant("acme", &spec("word", ENTITY, SHARED)));
    let told = reconciler.told("apikey", "north", 2, "PolicyUnreadable").await;
    assert!(ready(&told).1.contains("app.hidden (word), which key north may not"), "{told}");
    let told = reconciler.told("tenant", "acme", 3, "PolicyUnreadable").await;
    assert!(!ready(&told).1.contains("key web"), "{told}");
    assert!(!north_reads(&reconciler).await);

    reconciler.write("acme.yaml", &tenant("acme", &spec("id", ENTITY, SHARED)));
    reconciler.told("tenant", "acme", 4, DONE).await;
    reconciler.told("apikey", "north", 2, DONE).await;
    assert!(north_reads(&reconciler).await);
}
