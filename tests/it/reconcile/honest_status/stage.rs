//! A tenant in a cluster, with operator and data plane, and whoever holds its statuses against what roles see.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::{Mutex, MutexGuard};
use rowgate_tests::servers::cluster::{Cluster, Namespace, Recording, State, kstatus};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::operator::Operator;
use rowgate_tests::servers::postgres::{Server, attempt, connect};
use rowgate_tests::wait::until;
use rowgate_tests::world::get;
use rowgate_tests::world::status::ready;
use serde_json::Value;

use super::turnstile::{Turnstile, ask};

/// 3 notes of the north and 5 of the south: how many a role sees says which.
const BOOTSTRAP: &str = "create schema app;
    create table app.notes (id bigint primary key, region text not null, body text not null);
    insert into app.notes
    select i, case when i <= 3 then 'north' else 'south' end, 'note ' || i from generate_series(1, 8) i;";

/// Manifests of Tenant `acme` with the schema of [`BOOTSTRAP`]. What unscoped keys may read, their region, and the
/// expression of a policy beside the one for regions; restrictive, so that it shows nobody more.
pub(super) fn tenant(name: &str, fields: &str, region: &str, expression: &str) -> String {
    let database = name.replace('-', "_");
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}-bootstrap}}
data:
  schema.sql: |
    {BOOTSTRAP}
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {{name: {name}}}
spec:
  database: {{name: {database}, bootstrap: {{configMapRef: {{name: {name}-bootstrap}}}}}}
  shared:
    permissions: [{{entity: notes, actions: [read], fields: {{include: {fields}}}}}]
    claims: {{region: {region}}}
  entities:
    - name: notes
      source: {{schema: app, object: notes}}
      rowLevelSecurity:
        policies:
          - {{name: own_region, column: region, equals: {{claim: region}}}}
          - {{name: beside, restrictive: true, expression: {expression:?}}}
"
    )
}

/// The manifest of an ApiKey; `spec` in braces of YAML.
pub(super) fn key(name: &str, tenant: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {name}}}\n\
         spec: {{tenantRef: {{name: {tenant}}}{spec}}}\n"
    )
}

/// A scope that reads these fields of notes in one region.
pub(super) fn scoped(fields: &str, region: &str) -> String {
    format!(
        ", claims: {{region: {region}}}, scope: {{permissions: [{{entity: notes, actions: [read], fields: {{include: {fields}}}}}]}}"
    )
}

/// What an object's manifest asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) resource: &'static str,
    pub(super) name: &'static str,
    pub(super) generation: i64,
    /// The ApiKey that shows whether it is there.
    pub(super) key: &'static str,
    /// The fields and the number of rows that are read with that key, as [`Stage::held`] says it, from the moment in which
    /// the object is `Current`. `None`: it never is.
    pub(super) held: Option<&'static str>,
}

pub(super) struct Stage {
    pub(super) namespace: Namespace<'static>,
    pub(super) server: Server,
    pub(super) operator: Operator,
    pub(super) data_plane: DataPlane,
    tenants: Recording,
    keys: Recording,
    doors: Mutex<BTreeMap<String, Door>>,
    /// How much of `tenants` and `keys` is not judged any more.
    past: Mutex<(usize, usize)>,
    /// By uid and version of the object.
    verdicts: Mutex<BTreeMap<(String, String), String>>,
}

/// What an ApiKey is in the database and to clients. It outlives the object.
#[derive(Debug, Clone)]
struct Door {
    tenant: String,
    role: String,
    secret: String,
}

/// How a walk went.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Walk {
    /// Transactions that were let through one at a time.
    pub(super) n_turns: usize,
    /// How often the database was not what was wanted when one of them stood at the turnstile.
    pub(super) n_different: usize,
}

impl Stage {
    /// Operator and data plane run, and nothing is declared. `resync_seconds`: see [`Operator::start_every`].
    pub(super) async fn new(resync_seconds: Option<u32>) -> Stage {
        let namespace = Cluster::shared().await.namespace().await;
        let server = Server::with(&["log_statement=all", "autovacuum=off"]).await;
        let operator = Operator::start_every(resync_seconds, &namespace, &server, "a").await;
        let data_plane = operator.data_plane(&namespace, &server).await;
        operator.leads().await;
        let (tenants, keys) = (namespace.record("tenants").await, namespace.record("apikeys").await);
        Stage {
            past: Mutex::default(),
            namespace,
            server,
            operator,
            data_plane,
            tenants,
            keys,
            doors: Mutex::default(),
            verdicts: Mutex::default(),
        }
    }

    pub(super) async fn turnstile(&self, database: &str, table: &'static str) -> Turnstile {
        Turnstile::close(self.server.superuser(database), table).await
    }

    async fn door(&self, key: &str) -> Option<Door> {
        if let Some(object) = self.namespace.get("apikeys", key).await
            && let Some(role) = object["status"]["role"].as_str()
            && let Some(secret) = self.namespace.secret(key).await.and_then(|mut it| it.remove("apiKey"))
        {
            let tenant = object["spec"]["tenantRef"]["name"].as_str().expect("a key names its Tenant");
            let door = Door { tenant: tenant.to_owned(), role: role.to_owned(), secret };
            self.doors().insert(key.to_owned(), door);
        }
        self.doors().get(key).cloned()
    }

    fn doors(&self) -> MutexGuard<'_, BTreeMap<String, Door>> {
        self.doors.lock()
    }

    /// What is read with a key, in the database as its role and over the data plane: fields, a colon, rows; `no` where there
    /// is nothing to be read.
    pub(super) async fn held(&self, key: &str) -> String {
        let Some(door) = self.door(key).await else { return "no".to_owned() };
        let in_database = self.in_database(&door).await.unwrap_or_else(|| "no".to_owned());
        let served = self.read(key).await;
        if in_database == served { served } else { format!("{in_database} in the database, {served} served") }
    }

    /// As [`Stage::held`], over the data plane alone.
    pub(super) async fn read(&self, key: &str) -> String {
        let Some(door) = self.door(key).await else { return "no".to_owned() };
        self.served(&door).await.unwrap_or_else(|| "no".to_owned())
    }

    async fn in_database(&self, door: &Door) -> Option<String> {
        let mut conn = connect(&self.server.superuser(&door.tenant)).await.ok()?;
        let enter = format!("begin; set local role \"{}\"; select count(*) from app.notes", door.role);
        attempt(&mut conn, &enter).await.ok()?;
        let n_rows: i64 = ask(&mut conn, "select count(*) from app.notes".to_owned()).await;
        let fields = "select coalesce(string_agg(attname, ',' order by attname), '') from pg_attribute \
                      where attrelid = 'app.notes'::regclass and 0 < attnum \
                      and has_column_privilege(attrelid, attnum, 'select')";
        Some(format!("{}:{n_rows}", ask::<String>(&mut conn, fields.to_owned()).await))
    }

    async fn served(&self, door: &Door) -> Option<String> {
        let url = format!("{}/auth/{}/api/notes", self.data_plane.url(), door.tenant);
        let answer = get(&url, &door.secret).await;
        let rows = answer.body["value"].as_array().filter(|_| answer.status.is_success())?;
        let fields: BTreeSet<&str> =
            rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys().map(String::as_str)).collect();
        Some(format!("{}:{}", fields.into_iter().collect::<Vec<_>>().join(","), rows.len()))
    }

    /// Whether anybody is still let in with the key, or would be.
    async fn lives(&self, key: &str) -> bool {
        let Some(door) = self.door(key).await else { return false };
        let row = format!("select exists (select from dl.keys where name = '{key}' and revoked_at is null)");
        match connect(&self.server.superuser(&door.tenant)).await {
            Ok(mut conn) => ask(&mut conn, row).await || self.served(&door).await.is_some(),
            Err(_) => self.served(&door).await.is_some(),
        }
    }

    /// Holds every state of the object that was shown at its generation against what is there now: nothing but the operator
    /// may have changed it since, or since [`Stage::go_on_from_here`]. True when the object is settled: `Current`, `Failed`, revoked or gone.
    pub(super) async fn judge(&self, wanted: &Wanted) -> bool {
        let past = *self.past.lock();
        let (recording, past) =
            if wanted.resource == "tenants" { (&self.tenants, past.0) } else { (&self.keys, past.1) };
        // what was said of older generations was judged before the edit was sent
        let states = recording.states().into_iter().skip(past).filter(|state| {
            let metadata = &state.object["metadata"];
            metadata["name"] == wanted.name && Some(wanted.generation) <= metadata["generation"].as_i64()
        });
        let states: Vec<State> = states.collect();
        let Some(last) = states.last() else { return false };
        if last.change == "DELETED" {
            assert!(!self.lives(wanted.key).await, "{wanted:?} is gone, and its key lives");
            return true;
        }
        let objects: Vec<Value> = states.iter().map(|state| state.object.clone()).collect();
        let verdicts = self.verdicts(&objects);
        let mut said = verdicts.iter().zip(&objects).filter(|(verdict, _)| *verdict == "Current");
        if let Some((_, object)) = said.next() {
            let held = self.held(wanted.key).await;
            assert_eq!(Some(&*held), wanted.held, "{wanted:?} was said to be Current: {}", object["status"]);
        }
        let is_told = last.object["status"]["observedGeneration"] == last.object["metadata"]["generation"];
        let revoked = is_told && ready(&last.object["status"]).0 == "Revoked";
        assert!(!revoked || !self.lives(wanted.key).await, "{wanted:?} is said to be revoked, and lives");
        revoked || ["Current", "Failed"].contains(&verdicts.last().map_or("", String::as_str))
    }

    /// The word of kstatus on each, which is asked once for each version of an object.
    fn verdicts(&self, objects: &[Value]) -> Vec<String> {
        let mut known = self.verdicts.lock();
        let text =
            |object: &Value, name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        let version = |object: &Value| (text(object, "uid"), text(object, "resourceVersion"));
        let new: Vec<Value> =
            objects.iter().filter(|it| !known.contains_key(&version(it))).cloned().collect();
        if !new.is_empty() {
            known
                .extend(new.iter().map(version).zip(kstatus(&new).into_iter().map(|verdict| verdict.status)));
        }
        objects.iter().map(|object| known[&version(object)].clone()).collect()
    }

    /// Waits until these are settled, judging whatever is said.
    pub(super) async fn settle(&self, wanted: &[Wanted]) {
        until("an end", async || self.all_settled(wanted).await.then_some(())).await;
    }

    async fn all_settled(&self, wanted: &[Wanted]) -> bool {
        let mut all = true;
        for one in wanted {
            all &= self.judge(one).await;
        }
        all
    }

    /// Lets the operator's transactions through one at a time until these are settled. While one stands at the turnstile,
    /// everything that was said by then is judged.
    pub(super) async fn walk(&self, turnstile: &mut Turnstile, wanted: &[Wanted]) -> Walk {
        let mut walk = Walk::default();
        loop {
            let met = until("somebody at the turnstile, or an end", async || {
                if turnstile.is_met().await {
                    return Some(true);
                }
                self.all_settled(wanted).await.then_some(false)
            })
            .await;
            if !met {
                return walk;
            }
            self.polls(1).await;
            self.caught_up().await;
            for one in wanted {
                self.judge(one).await;
                walk.n_different += usize::from(Some(&*self.held(one.key).await) != one.held);
            }
            turnstile.turn().await;
            walk.n_turns += 1;
        }
    }

    /// Declares keys, and their Tenant when the operator knows them: what the Tenant gives is then what they are to read.
    pub(super) async fn declare(&self, tenant: &str, keys: &[(&str, String)]) {
        for (name, manifest) in keys {
            self.namespace.apply(manifest).await.ok();
            self.namespace.told("apikeys", name, 1, "TenantNotFound").await;
        }
        self.go_on_from_here().await;
        self.namespace.apply(tenant).await.ok();
    }

    /// What was said so far is not judged any more: somebody else has changed the database since.
    pub(super) async fn go_on_from_here(&self) {
        self.caught_up().await;
        let past = (self.tenants.states().len(), self.keys.states().len());
        *self.past.lock() = past;
    }

    async fn caught_up(&self) {
        self.tenants.caught_up().await;
        self.keys.caught_up().await;
    }

    /// Waits until the operator has asked so many times more who serves: what it had to say by now is on its way.
    pub(super) async fn polls(&self, n: usize) {
        let polls = || self.server.log().matches("left join control.served").count();
        let end = polls() + n;
        until("further polls of the replicas", async || (end <= polls()).then_some(())).await;
    }

    /// The reason of an object's `Ready`, and whether kstatus takes it to be `Current`.
    pub(super) async fn says(&self, resource: &str, name: &str) -> (String, bool) {
        let object = self.namespace.get(resource, name).await.unwrap_or_default();
        let current = object.is_object() && self.verdicts(std::slice::from_ref(&object)) == ["Current"];
        (ready(&object["status"]).0.to_owned(), current)
    }
}
