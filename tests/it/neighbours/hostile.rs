//! Every manifest that may do harm to neighbours: what is put into a folder beside them, with what its Tenant is told.

use rowgate_tests::stage::{DONE, Stage};
use rowgate_tests::wait::until_ok;
use rowgate_tests::world::status::ready;
use serde_json::Value;

/// A Tenant whose team is not to be trusted.
pub(super) struct Hostile {
    /// Of the Tenant; its key has the same.
    pub(super) name: &'static str,
    /// The bootstrap script, each line by itself.
    pub(super) script: &'static str,
    /// Why the Tenant is not Ready, and what the message holds.
    pub(super) reason: &'static str,
    pub(super) says: &'static str,
}

pub(super) const HOSTILE: &[Hostile] = &[
    Hostile {
        name: "raises",
        script: "do $$ begin raise exception 'there is no customer' using errcode = 'RG001'; end $$;",
        reason: "BootstrapFailed",
        says: "RG001: there is no customer",
    },
    Hostile {
        name: "closes",
        script: "create or replace function dl.fence(wanted bigint) returns void language plpgsql as
            $$ begin raise exception 'closed' using errcode = 'RG001'; end $$;",
        reason: "BootstrapFailed",
        says: "permission denied for schema dl",
    },
    Hostile {
        name: "jumps",
        script: "update dl.state set epoch = 9223372036854775807;",
        reason: "BootstrapFailed",
        says: "permission denied for table state",
    },
    Hostile {
        name: "traps",
        script: "create function public.trap() returns trigger language plpgsql as
            $$ begin raise exception 'trapped' using errcode = 'RG001'; end $$;
            create trigger trap before update on dl.state execute function public.trap();",
        reason: "BootstrapFailed",
        says: "permission denied for table state",
    },
    Hostile { name: "hangs", script: "select pg_sleep(3600);", reason: "Progressing", says: "takes long" },
    Hostile {
        name: "shouts",
        script: "do $$ declare much text := repeat('x', 40000000); begin
            raise exception '%', much using detail = much, hint = much, errcode = 'RG001'; end $$;",
        reason: "BootstrapFailed",
        says: "xxx...; correct the script",
    },
    Hostile {
        name: "floods",
        script: "set client_min_messages = notice;
            do $$ begin for i in 1..5000 loop raise notice '%', repeat('x', 2000); end loop;
            raise exception 'flooded' using errcode = 'RG001'; end $$;",
        reason: "BootstrapFailed",
        says: "RG001: flooded",
    },
    Hostile {
        name: "fills",
        script: "create table public.t (word text);
            do $$ begin
                execute format('create policy long on public.t using (word <> %L)', repeat('hostile words ', 700000));
            end $$;",
        reason: "TooLarge",
        says: "pg_policy holds more than Rowgate reads",
    },
    Hostile {
        name: "holds",
        script: "select lo_create(4242);
            do $$ declare role text; begin
            for role in select rolname from pg_roles where rolname ~ '^(key_|t)[0-9a-z]{26}' loop
                execute format('grant select on large object 4242 to %I', role);
            end loop; end $$;",
        reason: DONE,
        says: "",
    },
];

impl Hostile {
    /// Its script, its Tenant and a key.
    pub(super) fn manifests(&self) -> String {
        let Hostile { name, script, .. } = self;
        let script = script.replace('\n', "\n    ");
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  schema.sql: |\n    {script}\n---\n\
             apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec:\n  \
             database: {{bootstrap: {{configMapRef: {{name: {name}}}}}}}\n---\n\
             apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {name}}}\nspec: {{tenantRef: {{name: {name}}}}}\n"
        )
    }

    /// Waits until its Tenant is told what is to be changed, in a message that quotes nothing at length.
    pub(super) async fn is_told(&self, stage: &Stage) {
        let what = format!("{} of {}", self.reason, self.name);
        let status: Value = until_ok(&what, async || {
            let status = stage.status("Tenant", self.name).await;
            let (reason, message) = ready(&status);
            if reason == self.reason && message.contains(self.says) { Ok(status) } else { Err(status) }
        })
        .await;
        let message = ready(&status).1;
        assert!(message.len() < 2_000, "{message}");
    }
}
