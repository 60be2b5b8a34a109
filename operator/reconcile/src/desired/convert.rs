//! From resources to [`Desired`]: what the manifests say, in plain values.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::{EntityName, Ulid};
use rowgate_core::role::TenantLogin;
use rowgate_crds::{self as crds, ApiKey, Claims, Relationship, Tenant, WebhookSubscription};
use rowgate_pg::control::installation::Installation;
use rowgate_sql::catalog::{Action, EntityKind, GraphQlNames, Limits, Protection};
use rowgate_sql::ddl::protection::Writers;
use rowgate_sql::ddl::subscriptions::Settings;
use rowgate_sql::text::Ident;

use crate::desired::annotations;
use crate::desired::{
    Desired, EndSpec, EntitySpec, KeySpec, MigrationsSpec, Permission, PolicySpec, RelationshipSpec,
    RotationSpec, RowsSpec, Scope, SecretSpec, Security, SubscriptionSpec, ThroughSpec,
};
use crate::secrets::rotation;

/// The Tenant's part, without keys. Entities that this version does not serve are left out by the caller. `database`: its name
/// in the control database, which no manifest changes.
pub(crate) fn tenant(
    tenant: &Tenant,
    id: &Ulid,
    database: &str,
    installation: &Installation,
) -> Result<Desired, String> {
    let slug = tenant.slug().parse().map_err(|error| {
        format!("the slug {error}; delete this Tenant and create it with another spec.slug")
    })?;
    let database = Ident::new(database)
        .ok_or("database.name is too long; delete this Tenant and create it with a shorter one")?;
    let spec = &tenant.spec;
    let shared = spec.shared.clone().unwrap_or_default();
    let limits = spec.limits.clone().unwrap_or_default();
    let defaults = Limits::default();
    let verifiers = TenantLogin::ALL
        .iter()
        .filter(|login| ![TenantLogin::Views, TenantLogin::Migrations].contains(login))
        .map(|login| (login.role(id), installation.tenant_verifier(id, *login)))
        .collect();
    Ok(Desired {
        tenant: id.clone(),
        slug,
        database,
        owner: TenantLogin::Owner.role(id),
        is_adopted: !spec.database.create,
        generation: tenant.metadata.generation.unwrap_or(0),
        limits: Limits {
            max_page_size: limits.max_page_size.unwrap_or(defaults.max_page_size),
            statement_timeout_ms: limits
                .statement_timeout
                .map_or(defaults.statement_timeout_ms, crds::Span::millis),
            requests_per_second: limits.requests_per_second,
            graphql_cost_per_second: limits.graphql_cost_per_second,
            streams: limits.streams.unwrap_or(defaults.streams),
            max_outbox_bytes: limits.max_outbox_bytes.unwrap_or(defaults.max_outbox_bytes),
            subscriptions: limits.subscriptions.unwrap_or(defaults.subscriptions),
            exports: limits.exports.unwrap_or(defaults.exports),
            exports_per_key: limits.exports_per_key.unwrap_or(defaults.exports_per_key),
            max_export_rows: limits.max_export_rows,
            cors_origins: spec.cors.clone().unwrap_or_default().origins,
            graphql_cost: limits.graphql_cost.map_or(defaults.graphql_cost, u64::from),
            graphql_introspection: spec.graphql.clone().unwrap_or_default().introspection != Some(false),
            callers_sql: true,
            webhooks_allow_http: spec.webhooks.as_ref().and_then(|webhooks| webhooks.allow_http)
                == Some(true),
        },
        shared: permissions(&shared.permissions),
        shared_claims: shared.claims,
        entities: spec.entities.iter().filter_map(|it| entity(it, !spec.database.create)).collect(),
        keys: Vec::new(),
        relationships: Vec::new(),
        unread_relationships: BTreeSet::new(),
        verifiers,
        migrations: migrations(tenant),
    })
}

/// One ApiKey under the identifier that it has, or is to have.
pub(crate) fn key(
    key: &ApiKey,
    id: Ulid,
    secret: Option<SecretSpec>,
    installation: &Installation,
) -> KeySpec {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let scope = match &key.spec.scope {
        None => Scope::Unscoped,
        Some(scope) if scope.same_as.is_some() => Scope::SameAsShared,
        Some(scope) => Scope::Permissions(permissions(&scope.permissions)),
    };
    let verifier = installation.key_verifier(rowgate_core::role::DbRole::for_key(&id).as_str());
    KeySpec {
        uid: text(&key.metadata.uid),
        namespace: text(&key.metadata.namespace),
        name: text(&key.metadata.name),
        generation: key.metadata.generation.unwrap_or(0),
        scope,
        claims: key
            .spec
            .claims
            .iter()
            .flat_map(Claims::iter)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        expires_at: key.spec.expires_at.as_ref().map(|time| time.0.to_string()),
        revoked: key.spec.revoked,
        secret,
        rotation: key.spec.rotation.as_ref().map(|rotation| RotationSpec {
            every: rotation.every.duration(),
            overlap: rotation.overlap.duration(),
        }),
        rotate: annotations::value(&key.metadata, crds::ROTATE).map(rotation::digest),
        verifier,
        id,
    }
}

/// The password is another one for each value of the annotation.
fn migrations(tenant: &Tenant) -> Option<MigrationsSpec> {
    let spec = tenant.spec.database.migrations.as_ref()?;
    let rotate = annotations::value(&tenant.metadata, crds::ROTATE);
    let digits = rotate.map(rotation::digest).and_then(|digest| u32::from_str_radix(&digest[..8], 16).ok());
    Some(MigrationsSpec {
        secret_name: spec.secret_name.clone(),
        generation: digits.unwrap_or(1),
        expires_at: spec.expires_at.as_ref().map(|time| time.0),
    })
}

/// `None`: the linking table has a name that PostgreSQL cannot hold.
pub(crate) fn relationship(relationship: &Relationship) -> Option<RelationshipSpec> {
    let spec = &relationship.spec;
    let end = |end: &crds::End| EndSpec { entity: end.entity.clone(), fields: end.fields.clone() };
    let through = match &spec.through {
        None => None,
        Some(through) => Some(ThroughSpec {
            schema: Ident::new(&through.schema)?,
            object: Ident::new(&through.object)?,
            from: through.from_fields.clone(),
            to: through.to_fields.clone(),
        }),
    };
    Some(RelationshipSpec {
        uid: relationship.metadata.uid.clone().unwrap_or_default(),
        object: relationship.metadata.name.clone().unwrap_or_default(),
        generation: relationship.metadata.generation.unwrap_or(0),
        name: spec.name.clone(),
        from: end(&spec.from),
        to: end(&spec.to),
        through,
        to_one: spec.cardinality == crds::Cardinality::One,
        assume_unique: spec.assume_unique == Some(true),
        inverse: spec.inverse.clone(),
    })
}

/// What is left out is what the contract says.
pub(crate) fn subscription(subscription: &WebhookSubscription) -> SubscriptionSpec {
    let spec = &subscription.spec;
    let filter = spec.filter.clone().unwrap_or_default();
    let (batch, retry) = (spec.batch.clone().unwrap_or_default(), spec.retry.clone().unwrap_or_default());
    let number = |n: Option<u32>, or: i32| n.and_then(|n| i32::try_from(n).ok()).unwrap_or(or);
    let seconds = |it: Option<crds::Span>, or: i32| {
        it.map_or(or, |it| i32::try_from(it.duration().as_secs()).unwrap_or(or))
    };
    let mut ops = filter.ops;
    if ops.is_empty() {
        ops = vec![crds::EventOp::Insert, crds::EventOp::Update, crds::EventOp::Delete];
    }
    ops.sort_unstable();
    let op = |op: crds::EventOp| match op {
        crds::EventOp::Insert => "i",
        crds::EventOp::Update => "u",
        crds::EventOp::Delete => "d",
        crds::EventOp::Truncate => "t",
    };
    let (initial, longest) = (seconds(retry.initial_delay, 5), seconds(retry.max_delay, 3600));
    SubscriptionSpec {
        uid: subscription.metadata.uid.clone().unwrap_or_default(),
        object: subscription.metadata.name.clone().unwrap_or_default(),
        owner: spec.owner_ref.name.clone(),
        settings: Settings {
            name: subscription.metadata.name.clone().unwrap_or_default(),
            owner_key: String::new(),
            url: spec.url.clone(),
            tables: (!filter.tables.is_empty()).then_some(filter.tables),
            ops: ops.into_iter().map(|it| op(it).to_owned()).collect(),
            payload_query: spec.payload_query.clone().filter(|query| !query.trim().is_empty()),
            headers: spec.headers.clone(),
            max_events: number(batch.max_events, 100),
            max_bytes: number(batch.max_bytes, 262_144),
            max_attempts: number(retry.max_attempts, 10),
            initial_seconds: initial.min(longest),
            max_seconds: longest,
            disable_on_gone: retry.disable_on_gone == Some(true),
            suspend: spec.suspend == Some(true),
        },
        replay: annotations::value(&subscription.metadata, crds::REPLAY).map(str::to_owned),
    }
}

/// `None`: a name that PostgreSQL cannot hold.
fn entity(entity: &crds::Entity, is_adopted: bool) -> Option<EntitySpec> {
    let kind = match entity.kind {
        crds::EntityKind::Table => EntityKind::Table,
        crds::EntityKind::View => EntityKind::View,
        crds::EntityKind::Procedure => EntityKind::Procedure,
    };
    let security = match entity.row_level_security.as_ref().map(crds::RowLevelSecurity::choice) {
        None => Security::LeftOut,
        Some(crds::Rls::None) => Security::Open,
        Some(crds::Rls::Existing) => Security::Existing,
        // a policy that cannot be read must not be left out alone: it may be a restrictive one
        Some(crds::Rls::Policies(policies)) => {
            policies.iter().map(policy).collect::<Option<_>>().map_or(Security::LeftOut, Security::Policies)
        }
    };
    let protection = entity
        .concurrency_protection
        .as_ref()
        .map(|protection| Protection { soft_delete: protection.soft_delete_column.clone() });
    let writers = match entity.concurrency_protection.as_ref().map(|protection| protection.writers) {
        None | Some(Some(crds::Writers::All)) => Writers::All,
        Some(Some(crds::Writers::ApiOnly)) => Writers::ApiOnly,
        Some(None) if is_adopted => Writers::ApiOnly,
        Some(None) => Writers::All,
    };
    Some(EntitySpec {
        name: entity.name.parse().ok()?,
        kind,
        schema: Ident::new(&entity.source.schema)?,
        object: Ident::new(&entity.source.object)?,
        key_fields: entity.key_fields.clone(),
        mappings: entity.mappings.clone(),
        rest: entity.rest.enabled,
        graphql: graphql_names(entity),
        protection,
        writers,
        hide_soft_deleted: entity.hide_soft_deleted == Some(true),
        events: entity.events == Some(true),
        allow_definer: entity.allow_definer == Some(true),
        security,
        replaces_policies: entity.row_level_security.as_ref().is_some_and(|it| it.replace == Some(true)),
    })
}

fn graphql_names(entity: &crds::Entity) -> GraphQlNames {
    let crds::GraphQl { enabled, singular, plural } = entity.graphql.clone().unwrap_or_default();
    GraphQlNames { enabled, singular, plural }
}

fn policy(policy: &crds::Policy) -> Option<PolicySpec> {
    let every = [Action::Read, Action::Create, Action::Update, Action::Delete];
    let actions: Vec<Action> = policy.actions.iter().map(|action| policy_action(*action)).collect();
    let rows = match (&policy.column, &policy.equals, &policy.expression) {
        (Some(field), Some(equals), _) => match (&equals.claim, &equals.literal) {
            (Some(claim), _) => RowsSpec::Claim { field: field.clone(), claim: claim.clone() },
            (None, literal) => RowsSpec::Literal { field: field.clone(), value: literal.clone()? },
        },
        (_, _, expression) => RowsSpec::Expression(expression.clone()?),
    };
    Some(PolicySpec {
        name: Ident::new(&policy.name)?,
        actions: if actions.is_empty() { every.to_vec() } else { actions },
        roles: (!policy.roles.is_empty()).then(|| policy.roles.clone()),
        rows,
        check: policy.check.clone(),
        restrictive: policy.restrictive,
    })
}

fn policy_action(action: crds::PolicyAction) -> Action {
    match action {
        crds::PolicyAction::Create => Action::Create,
        crds::PolicyAction::Read => Action::Read,
        crds::PolicyAction::Update => Action::Update,
        crds::PolicyAction::Delete => Action::Delete,
    }
}

fn permissions(permissions: &[crds::Permission]) -> Vec<Permission> {
    permissions.iter().filter_map(permission).collect()
}

/// A name that is none of an entity's cannot be spelled; it is reported with those that are not served.
fn permission(permission: &crds::Permission) -> Option<Permission> {
    let entity: EntityName = permission.entity.parse().ok()?;
    let actions = permission.actions.iter().map(|action| match action {
        crds::Action::Create => Action::Create,
        crds::Action::Read => Action::Read,
        crds::Action::Update => Action::Update,
        crds::Action::Delete => Action::Delete,
        crds::Action::Execute => Action::Execute,
    });
    let fields = permission.fields.clone().unwrap_or_default();
    Some(Permission {
        entity,
        actions: actions.collect(),
        include: (!fields.includes_all()).then_some(fields.include),
        exclude: fields.exclude,
    })
}

/// By exposed name of a column, for `status`.
pub(crate) fn exposed<'a>(mappings: &'a BTreeMap<String, String>, column: &'a str) -> &'a str {
    mappings.get(column).map_or(column, String::as_str)
}
