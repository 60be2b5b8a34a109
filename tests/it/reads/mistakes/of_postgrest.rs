//! Parameters of PostgREST and of Hasura's REST endpoints and GraphQL arguments.

use super::{Mistake, entity, field, filter, option, order};

pub(super) const POSTGREST: &[Mistake] = &[
    option("orders?select=id,state", "write $select=id,state", "orders?$select=id,state"),
    option("orders?select=id,customers(name)", "write $select=name,name with names of fields", ""),
    option("orders?columns=id", "write $select=id", "orders?$select=id"),
    option("orders?order=id.desc", "write $orderby=id desc", "orders?$orderby=id desc"),
    option(
        "orders?order=shipped_on.desc.nullslast,id",
        "write $orderby=shipped_on desc,id",
        "orders?$orderby=shipped_on desc,id",
    ),
    option("orders?limit=5", "write $first=5", "orders?$first=5"),
    option("orders?offset=10", "write $first=100 and follow nextLink", "orders?$first=100"),
    option("orders?id=eq.5", "write $filter=id eq 5", "orders?$filter=id eq 5"),
    option("orders?id=gte.5", "write $filter=id ge 5", "orders?$filter=id ge 5"),
    option("orders?id=in.(1,2)", "write $filter=id in (1,2)", "orders?$filter=id in (1,2)"),
    option("orders?id=not.in.(1,2)", "write $filter=not (id in (1,2))", "orders?$filter=not (id in (1,2))"),
    option("orders?region=neq.north", "write $filter=region ne 'north'", "orders?$filter=region ne 'north'"),
    option("orders?state=eq.paid", "write $filter=state eq 'paid'", "orders?$filter=state eq 'paid'"),
    option(
        "orders?shipped_on=is.null",
        "write $filter=shipped_on eq null",
        "orders?$filter=shipped_on eq null",
    ),
    option(
        "orders?shipped_on=not.is.null",
        "write $filter=shipped_on ne null",
        "orders?$filter=shipped_on ne null",
    ),
    option(
        "orders?placed_at=gt.2026-01-01T00:00:00Z",
        "write $filter=placed_at gt 2026-01-01T00:00:00Z",
        "orders?$filter=placed_at gt 2026-01-01T00:00:00Z",
    ),
    option(
        "customers?name=like.*Berg",
        "write $filter=endswith(name,'Berg')",
        "customers?$filter=endswith(name,'Berg')",
    ),
    option(
        "customers?name=ilike.*BERG*",
        "write $filter=contains(tolower(name),'berg')",
        "customers?$filter=contains(tolower(name),'berg')",
    ),
    option(
        "customers?notes=fts.Morning",
        "write $filter=contains(tolower(notes),'morning')",
        "customers?$filter=contains(tolower(notes),'morning')",
    ),
    option(
        "products?tags=cs.{indoor}",
        "write $filter=tags eq '{indoor}'",
        "products?$filter=tags eq '{indoor}'",
    ),
    option(
        "orders?or=(id.eq.1,region.eq.south)",
        "write $filter=id eq 1 or region eq 'south'",
        "orders?$filter=id eq 1 or region eq 'south'",
    ),
    option(
        "orders?not.and=(id.gt.1,id.lt.9)",
        "write $filter=not (id gt 1 and id lt 9)",
        "orders?$filter=not (id gt 1 and id lt 9)",
    ),
    option("orders?on_conflict=id", "send PATCH or PUT to the row's URL", ""),
    option("orders?id=eq.5&select=id", "write $filter=id eq 5", "orders?$filter=id eq 5"),
    field("orders?$filter=id.eq.5", "write id eq 5", "orders?$filter=id eq 5"),
    field("orders?$orderby=id.desc", "write $orderby=id desc", "orders?$orderby=id desc"),
    order("orders?$orderby=shipped_on nulls last", "NULL, which comes last", "orders?$orderby=shipped_on"),
    order(
        "orders?$orderby=shipped_on asc nulls first",
        "no option for the position of NULL",
        "orders?$orderby=shipped_on",
    ),
];

pub(super) const HASURA: &[Mistake] = &[
    option(r#"orders?where={"id":{"_eq":5}}"#, "write $filter=id eq 5", "orders?$filter=id eq 5"),
    option(
        r#"orders?where={"region":{"_in":["north","south"]}}"#,
        "write $filter=region in ('north','south')",
        "orders?$filter=region in ('north','south')",
    ),
    option(
        r#"customers?where={"name":{"_ilike":"%25Berg%25"}}"#,
        "write $filter=contains(tolower(name),'berg')",
        "customers?$filter=contains(tolower(name),'berg')",
    ),
    option(
        r#"orders?where={"shipped_on":{"_is_null":true}}"#,
        "write $filter=shipped_on eq null",
        "orders?$filter=shipped_on eq null",
    ),
    option(
        r#"orders?where={"id":{"_lte":9},"state":{"_neq":"new"}}"#,
        "write $filter=id le 9 and state ne 'new'",
        "orders?$filter=id le 9 and state ne 'new'",
    ),
    option(
        r#"orders?where={"id":{"_nin":[1,2]}}"#,
        "write $filter=not (id in (1,2))",
        "orders?$filter=not (id in (1,2))",
    ),
    option(
        r#"orders?where={"_or":[{"id":{"_eq":5}}]}"#,
        "write a condition such as $filter=id eq 5",
        "orders?$filter=id eq 5",
    ),
    option(r#"orders?order_by={"id":"desc"}"#, "write $orderby=id desc", "orders?$orderby=id desc"),
    option(
        r#"orders?order_by={"shipped_on":"asc_nulls_last"}"#,
        "write $orderby=shipped_on",
        "orders?$orderby=shipped_on",
    ),
    option(
        "orders?distinct_on=region",
        "write $select=region&$orderby=region",
        "orders?$select=region&$orderby=region",
    ),
    option("orders?limit=10&offset=20", "write $first=10", "orders?$first=10"),
    filter(r#"orders?$filter={"id":{"_eq":5}}"#, "such as id eq 5", "orders?$filter=id eq 5"),
    filter("orders?$filter=id _eq 5", "write id eq 5", "orders?$filter=id eq 5"),
    filter(
        "customers?$filter=name _like '%25Berg'",
        "write endswith(name,'Berg')",
        "customers?$filter=endswith(name,'Berg')",
    ),
    entity("orders_by_pk", "GET /auth/{tenant}/api lists", ""),
];
