//! Every kind of change by hand, and how each is named.

/// What is run as a superuser, and what is said to be otherwise then; `{north}` and the like stand for role names.
pub(super) const BY_HAND: &[(&str, &str)] = &[
    // rights on tables, columns, sequences, schemas, routines, the database
    ("grant select on shop.customers to {north}", "grant select on shop.customers to {north} was added"),
    (
        "grant select, delete on shop.products to public",
        "grant delete, select on shop.products to public was added",
    ),
    (
        "grant all on shop.products to datalake_user with grant option",
        "grant delete on shop.products to datalake_user has the grant option; grant insert, ...",
    ),
    (
        "grant select on shop.orders to {south} with grant option; set role {south}; grant select on shop.orders to public",
        "grant select on shop.orders to {south} was added; grant select on shop.orders to public was added",
    ),
    (
        "create role joe; grant select on shop.orders to joe with grant option; revoke all on shop.orders from {set_south}",
        "grant select on shop.orders to joe was added; grant select (id, customer_id, region, state, placed_at and 2 more) on shop.orders to {set_south} is missing",
    ),
    (
        "grant select (email) on shop.customers to {set_south}",
        "grant select (email) on shop.customers to {set_south} was added",
    ),
    (
        "grant update (notes), references (id) on shop.customers to {north}",
        "grant references (id) on shop.customers to {north} was added; grant update (notes) on shop.customers to {north} was added",
    ),
    (
        "grant select (email) on shop.customers to public",
        "grant select (email) on shop.customers to public was added",
    ),
    (
        "grant select (id) on shop.customers to {set_south} with grant option",
        "grant select (id) on shop.customers to {set_south} has the grant option",
    ),
    (
        "grant update on sequence shop.orders_id_seq to public",
        "grant update on sequence shop.orders_id_seq to public was added",
    ),
    ("grant create on schema shop to {south}", "grant create on schema shop to {south} was added"),
    (
        "grant usage on schema public to public; grant create on schema public to {north}",
        "grant create on schema public to {north} was added; grant usage on schema public to public was added",
    ),
    (
        "grant execute on function shop.secret() to public",
        "grant execute on routine shop.secret() to public was added",
    ),
    (
        "grant execute on function shop.best_sellers(integer) to public",
        "grant execute on routine shop.best_sellers(integer) to public was added",
    ),
    (
        "grant execute on procedure shop.place_order(bigint, jsonb) to {set_north}",
        "grant execute on routine shop.place_order(bigint,jsonb) to {set_north} was added",
    ),
    (
        "grant execute on function shop.best_sellers(integer) to datalake_user with grant option",
        "grant execute on routine shop.best_sellers(integer) to datalake_user has the grant option",
    ),
    (
        "grant execute on function dl.fence(bigint), dl.revoke(text) to {north}",
        "grant execute on routine dl.fence(bigint) to {north} was added; grant execute on routine dl.revoke(text) to {north} was added",
    ),
    (
        "grant select on dl.key_secrets to datalake_user",
        "grant select on dl.key_secrets to datalake_user was added",
    ),
    (
        "grant connect, temporary on database shop to public",
        "grant connect, temporary on database shop to public was added",
    ),
    ("grant create on database shop to {north}", "grant create on database shop to {north} was added"),
    // and rights that are missing
    (
        "revoke select (id, region) on shop.orders from {set_south}",
        "grant select (id, region) on shop.orders to {set_south} is missing",
    ),
    (
        "revoke execute on function shop.best_sellers(integer) from {set_north}",
        "grant execute on routine shop.best_sellers(integer) to {set_north} is missing",
    ),
    (
        "revoke execute on procedure shop.place_order(bigint, jsonb) from datalake_user",
        "grant execute on routine shop.place_order(bigint,jsonb) to datalake_user is missing",
    ),
    (
        "revoke all on dl.backends from {lookups}",
        "grant delete, insert, select on dl.backends to {lookups} is missing",
    ),
    (
        "grant select on dl.backends to datalake_user",
        "grant select on dl.backends to datalake_user was added",
    ),
    ("revoke all on schema dl from {auth}, {keys}", "grant usage on schema dl to {auth} is missing"),
    (
        "revoke connect on database shop from {auth}, {keys}, {set_north}",
        "grant connect on database shop to {auth} is missing; grant connect on database shop to {set_north} is missing",
    ),
    (
        "revoke select on dl.own_claims from {set_north}; revoke execute on function dl.claim(text) from datalake_user",
        "grant select on dl.own_claims to {set_north} is missing; grant execute on routine dl.claim(text) to datalake_user is missing",
    ),
    // rights on what will be made
    (
        "alter default privileges for role {owner} grant select on tables to {north}",
        "default privileges grant rights on tables to {north}",
    ),
    (
        "alter default privileges for role {owner} grant execute on routines to public",
        "default privileges grant rights on routines to public",
    ),
    (
        "alter default privileges for role {owner} in schema shop grant select on tables to datalake_user",
        "default privileges in schema shop grant rights on tables to datalake_user",
    ),
    (
        "alter default privileges for role {owner} in schema shop grant execute on routines to public",
        "default privileges in schema shop grant rights on routines to public",
    ),
    (
        "alter default privileges for role {owner} grant usage on schemas to {south}",
        "default privileges grant rights on schemas to {south}",
    ),
    // policies and what switches them on
    ("drop policy own_region on shop.orders", "policy own_region on shop.orders is missing"),
    ("alter policy own_region on shop.orders using (true)", "policy own_region on shop.orders was changed"),
    (
        "alter policy own_region on shop.orders with check (true)",
        "policy own_region on shop.orders was changed",
    ),
    ("alter policy own_region on shop.orders to {north}", "policy own_region on shop.orders was changed"),
    (
        "alter policy own_region on shop.orders rename to mine",
        "policy mine on shop.orders was added; policy own_region on shop.orders is missing",
    ),
    ("create policy everything on shop.orders using (true)", "policy everything on shop.orders was added"),
    (
        "create policy everything on shop.order_lines as restrictive for select to {south} using (false)",
        "policy everything on shop.order_lines was added",
    ),
    (
        "drop policy all_rows on shop.products; create policy all_rows on shop.products for select using (true)",
        "policy all_rows on shop.products was changed",
    ),
    ("alter table shop.orders disable row level security", "row-level security of shop.orders is off"),
    (
        "alter table shop.orders force row level security",
        "row-level security of shop.orders is forced on its owner",
    ),
    ("alter view shop.order_summary owner to {owner}", "view shop.order_summary belongs to {owner}"),
    ("revoke select on shop.orders from {views}", "grant select on shop.orders to {views} is missing"),
    ("grant insert on shop.orders to {views}", "grant insert on shop.orders to {views} was added"),
    // concurrency protection
    ("drop trigger \"~dl_1_echo\" on shop.stock", "trigger ~dl_1_echo on shop.stock is missing"),
    ("drop trigger \"~dl_4_keep_all\" on shop.stock", "trigger ~dl_4_keep_all on shop.stock is missing"),
    (
        "alter table shop.stock disable trigger \"~dl_2_stamp\"",
        "trigger ~dl_2_stamp on shop.stock does not always fire",
    ),
    (
        "alter table shop.stock enable trigger \"~dl_3_keep\"",
        "trigger ~dl_3_keep on shop.stock does not always fire",
    ),
    (
        "alter table shop.stock enable replica trigger \"~dl_1_echo\"",
        "trigger ~dl_1_echo on shop.stock does not always fire",
    ),
    ("alter function dl.protect_echo() security definer", "function dl.protect_echo() was changed"),
    (
        "create or replace function dl.protect_stamp() returns trigger language plpgsql as 'begin return new; end'",
        "function dl.protect_stamp() was changed",
    ),
    (
        "grant execute on function dl.protect_stamp() to public",
        "grant execute on routine dl.protect_stamp() to public was added",
    ),
    (
        "alter table shop.stock alter column dl_expected_ts drop default",
        "dl_expected_ts of shop.stock lacks its default, or may be NULL",
    ),
    (
        "alter table shop.stock alter column dl_expected_ts drop not null",
        "dl_expected_ts of shop.stock lacks its default, or may be NULL",
    ),
    (
        "revoke update (dl_expected_ts), select (dl_expected_ts) on shop.stock from datalake_user",
        "grant select (dl_expected_ts) on shop.stock to datalake_user is missing; grant update (dl_expected_ts) on shop.stock to datalake_user is missing",
    ),
    // memberships that the operator's or the keys login can take back
    (
        "grant {set_north} to {south} with inherit true granted by {keys}",
        "role {south} is a member of {set_north}",
    ),
    (
        "grant {north} to {south} with inherit false, set true granted by {keys}",
        "role {south} is a member of {north}",
    ),
    (
        "grant {north} to {auth} with inherit true granted by {keys}",
        "role {auth} is a member of {north} with admin false, inherit true, set true",
    ),
    (
        "grant {set_north} to {north} with admin true, set true granted by {keys}",
        "role {north} is a member of {set_north} with admin true, inherit true, set true",
    ),
    ("revoke {north} from {auth} granted by {keys}", "role {auth} is not a member of {north}"),
    ("revoke {set_north} from {north} granted by {keys}", "role {north} is not a member of {set_north}"),
    (
        "grant datalake_user to {north} granted by rowgate_operator",
        "role {north} is a member of datalake_user",
    ),
    (
        "create role jane; grant datalake_user to jane granted by rowgate_operator; grant {owner} to jane granted by rowgate_operator",
        "role jane is a member of datalake_user; role jane is a member of {owner}",
    ),
    ("grant {owner} to {sql} granted by rowgate_operator", "role {sql} is a member of {owner}"),
    (
        "revoke datalake_user from {sql} granted by rowgate_operator",
        "role {sql} is not a member of datalake_user",
    ),
    (
        "grant datalake_user to {auth} with inherit true granted by rowgate_operator",
        "role {auth} is a member of datalake_user with admin false, inherit true, set true",
    ),
    // attributes and settings of roles
    ("alter role {north} nologin", "role {north} may not log in"),
    (
        "alter role {south} createrole inherit connection limit 3",
        "role {south} may create roles; role {south} inherits the rights of the roles that it is a member of; role {south} has the connection limit 3",
    ),
    (
        "alter role {set_south} login inherit",
        "role {set_south} may log in; role {set_south} inherits the rights of the roles that it is a member of",
    ),
    (
        "alter role {auth} createrole createdb inherit",
        "role {auth} may create roles; role {auth} inherits the rights of the roles that it is a member of; role {auth} may create databases",
    ),
    (
        "alter role datalake_user login createrole",
        "role datalake_user may log in; role datalake_user may create roles",
    ),
    (
        "alter role {north} set search_path = shop; alter role {north} in database shop set work_mem = '1MB'",
        "role {north} has the setting search_path; role {north} has the setting work_mem in database shop",
    ),
    (
        "alter role {owner} in database shop set row_security = off",
        "role {owner} has the setting row_security in database shop",
    ),
    // rows of dl
    (
        "update dl.claims set value = 'south' where value = 'north'",
        "claim region of {north} has another value",
    ),
    ("delete from dl.claims", "claim region of {north} is missing; claim region of {south} is missing"),
    (
        "insert into dl.claims values ('datalake_user', 'region', 'north')",
        "claim region of datalake_user was added",
    ),
    (
        "update dl.keys set role = 'datalake_user' where name = 'north'",
        "ApiKey north has another role in dl.keys",
    ),
    (
        "update dl.keys set set_role = 'datalake_user' where name = 'north'",
        "ApiKey north has another permission set in dl.keys",
    ),
    (
        "update dl.keys set set_role = null",
        "ApiKey shop-admin has another permission set in dl.keys; ApiKey north has another permission set in dl.keys; ApiKey south has another permission set in dl.keys",
    ),
    (
        "update dl.keys set expires_at = now() + interval '1 year' where name = 'south'",
        "ApiKey south expires at another time in dl.keys",
    ),
    (
        "update dl.keys set resolved = '{}' where name = 'south'",
        "ApiKey south has other columns in its scope than dl.keys has",
    ),
    (
        "update dl.entities set definition = jsonb_set(definition, '{object}', '\"products\"') where name = 'orders'",
        "entity orders has another definition in dl.entities",
    ),
    (
        "delete from dl.entities where name = 'orders'",
        "entity orders can be served and is missing from dl.entities",
    ),
    (
        "insert into dl.entities select 'more', definition from dl.entities where name = 'orders'",
        "entity more was added to dl.entities",
    ),
    (
        "update dl.permission_sets set permissions = '[]' where role = '{set_south}'",
        "the row of {set_south} in dl.permission_sets has other permissions",
    ),
    (
        "delete from dl.permission_sets where role = 'datalake_user'",
        "the row of datalake_user in dl.permission_sets is missing",
    ),
    (
        "insert into dl.permission_sets values ('joe', 'x', '[]')",
        "the row of joe was added to dl.permission_sets",
    ),
    ("update dl.state set limits = '{}'", "the limits in dl.state were changed"),
    (
        "delete from dl.applied where kind <> 'protection'",
        "policy own_region on shop.customers is not recorded in dl.applied; policy admins on shop.customers is not recorded in dl.applied; policy own_region on shop.order_lines is not recorded in dl.applied; policy admins on shop.order_lines is not recorded in dl.applied; policy own_region on shop.orders is not recorded in dl.applied; and 4 more",
    ),
    (
        "delete from dl.key_secrets",
        "the secret of ApiKey shop-admin is missing in dl.key_secrets; the secret of ApiKey north is missing in dl.key_secrets; the secret of ApiKey south is missing in dl.key_secrets",
    ),
];
