//! Options and operators of OData that are not served, or not so, and habits of Data API builder's users.

use super::{Mistake, entity, field, filter, option, order};

pub(super) const ODATA: &[Mistake] = &[
    option("orders?$top=5", "write $first=5", "orders?$first=5"),
    option("orders?$skip=5", "write $first=100 and follow nextLink", "orders?$first=100"),
    option("orders?$Select=id", "write $select", "orders?$select=id"),
    option("orders?$orderBy=id", "write $orderby", "orders?$orderby=id"),
    field("orders?$expand=customers", "no relationship", ""),
    option("orders?$search=x", "write $filter=contains(name,'x')", "customers?$filter=contains(name,'x')"),
    option(
        "orders?$apply=groupby((state))",
        "grouping and aggregation are not served yet: read the rows with $filter",
        "",
    ),
    option("orders?$format=json", "leave it out", ""),
    option("orders?$inlinecount=allpages", "write $count=true", "orders?$count=true"),
    option("orders?$count=True", "write $count=true", "orders?$count=true"),
    order("orders?$orderby=id DESC", "write $orderby=id desc", "orders?$orderby=id desc"),
    filter(
        "customers?$filter=substringof('Ada',name)",
        "write contains(name,'x')",
        "customers?$filter=contains(name,'x')",
    ),
    filter(
        "customers?$filter=matchesPattern(name,'^Ada')",
        "startswith(name,'x')",
        "customers?$filter=startswith(name,'x')",
    ),
    filter(
        "customers?$filter=name eq \"Ada Costa\"",
        "write 'Ada Costa'",
        "customers?$filter=name eq 'Ada Costa'",
    ),
    filter("customers?$filter=name eq 'O'Brien'", "write 'O''Brien'", "customers?$filter=name eq 'O''Brien'"),
    filter(
        "customers?$filter=contains(name,'O'Brien')",
        "write 'O''Brien'",
        "customers?$filter=contains(name,'O''Brien')",
    ),
    filter(
        "orders?$filter=placed_at ge 2026-01-01T00:00:00+02:00",
        "write 2026-01-01T00:00:00%2B02:00",
        "orders?$filter=placed_at ge 2026-01-01T00:00:00%2B02:00",
    ),
    filter("orders?$filter=placed_at ge '2026-01-01T00:00:00+02:00'", "write the + of the offset as %2B", ""),
    field("orders?$filter=ID eq 1", "did you mean \"id\"?", ""),
    field("orders?$filter=id eq 5L", "write 5", "orders?$filter=id eq 5"),
    field("customers?$filter=name eq Ada", "single quotes: 'Ada'", "customers?$filter=name eq 'Ada'"),
    field("orders?$filter=shipped_on eq NULL", "write null", "orders?$filter=shipped_on eq null"),
    field("orders?$filter=client/name eq 'x'", "no relationship", ""),
    filter(
        "orders?$filter=lines/any(quantity gt 1)",
        "a variable and a colon",
        "orders?$filter=lines/any(l: l/quantity gt 1)",
    ),
    filter(
        "orders?$filter=state has shop.order_state'paid'",
        "write state eq shop.order_state'paid'",
        "orders?$filter=state eq shop.order_state'paid'",
    ),
    filter("orders?$filter=state eq 'open'", "write one of 'new', 'paid'", ""),
    filter("orders?$filter=id divby 2 eq 1", "write id div 2", "orders?$filter=id div 2 eq 1"),
    filter("orders?$filter=placed_at lt now()", "write the time itself, such as 2024-01-31T10:00:00Z", ""),
    filter("orders?$filter=cast(id,Edm.String) eq '5'", "write the constant alone", ""),
    filter(
        "customers?$filter=NOT startswith(name,'A')",
        "write not",
        "customers?$filter=not startswith(name,'A')",
    ),
    entity("orders(5)", "a row of orders is at /orders/id/{value}", "orders/id/5"),
    entity("$metadata", "GET /auth/{tenant}/api lists", ""),
    option("orders/5", "a row of orders is at /orders/id/{value}", "orders/id/5"),
    option("?$top=5", "the list of entities takes no options", ""),
];

pub(super) const DATA_API_BUILDER: &[Mistake] = &[
    option("orders?first=5", "write $first=5", "orders?$first=5"),
    option("orders?$limit=5", "write $first=5", "orders?$first=5"),
    option("orders?$first=0", "from 1 to 1000", "orders?$first=1"),
    option("orders?after=W3siRW50aXR5TmFtZSI6Ik9y", "write $after=W3siRW50aXR5TmFtZSI6Ik9y", ""),
    option(r#"orders?orderBy={"id":"DESC"}"#, "write $orderby=id desc", "orders?$orderby=id desc"),
    option("orders?filter=id eq 5", "write $filter=id eq 5", "orders?$filter=id eq 5"),
    option(r#"orders?filter={"id":{"eq":5}}"#, "write $filter=id eq 5", "orders?$filter=id eq 5"),
    option("orders?totalCount=true", "write $count=true", "orders?$count=true"),
    option("orders?groupBy=state", "grouping and aggregation are not served yet", ""),
    filter("orders?$filter=id neq 5", "write id ne 5", "orders?$filter=id ne 5"),
    filter("orders?$filter=id gte 5", "write id ge 5", "orders?$filter=id ge 5"),
    filter(
        "customers?$filter=name contains 'Berg'",
        "write contains(name,'Berg')",
        "customers?$filter=contains(name,'Berg')",
    ),
    filter(
        "customers?$filter=name startsWith 'A'",
        "write startswith(name,'A')",
        "customers?$filter=startswith(name,'A')",
    ),
    filter(
        "customers?$filter=startsWith(name,'A')",
        "did you mean startswith?",
        "customers?$filter=startswith(name,'A')",
    ),
    filter(
        "orders?$filter=shipped_on isNull true",
        "write shipped_on eq null",
        "orders?$filter=shipped_on eq null",
    ),
    filter(
        "orders?$filter=region eq 'north' AND id gt 5",
        "write and",
        "orders?$filter=region eq 'north' and id gt 5",
    ),
    entity("Orders", "did you mean \"orders\"?", ""),
    entity("order-lines", "did you mean \"order_lines\"?", ""),
];
