//! Operators of SQL, and options of JSON:API and of frameworks.

use super::{Mistake, field, filter, option};

pub(super) const OTHERS: &[Mistake] = &[
    option("orders?page[size]=5", "write $first=5", "orders?$first=5"),
    option("orders?page[number]=2", "follow nextLink", "orders?$first=100"),
    option("orders?per_page=5", "write $first=5", "orders?$first=5"),
    option(
        "orders?filter[region]=north",
        "write $filter=region eq 'north'",
        "orders?$filter=region eq 'north'",
    ),
    option("orders?filters[id][$gte]=5", "write $filter=id ge 5", "orders?$filter=id ge 5"),
    option("orders?sort=-id", "write $orderby=id desc", "orders?$orderby=id desc"),
    option("orders?sort=id:desc", "write $orderby=id desc", "orders?$orderby=id desc"),
    option("orders?sort=id,desc", "write $orderby=id desc", "orders?$orderby=id desc"),
    option("orders?fields[orders]=id,state", "write $select=id,state", "orders?$select=id,state"),
    option("orders?include=customers", "write $expand=customers", ""),
    option("orders?id__gte=5", "write $filter=id ge 5", "orders?$filter=id ge 5"),
    option("orders?id!=5", "write $filter=id ne 5", "orders?$filter=id ne 5"),
    option("orders/id/5?fields=id", "write $select=id", "orders/id/5?$select=id"),
    option("orders/id/5?limit=1", "takes only $expand and $select", ""),
    option("customers?q=Berg", "write $filter=contains(name,'x')", "customers?$filter=contains(name,'x')"),
    // What shells make of a $ between double quotes.
    option("orders?=3", "put single quotes around the URL", "orders?$first=3"),
    option("orders?%20=3", "put single quotes around the URL", "orders?$first=3"),
    field("orders?$orderby=-id", "write $orderby=id desc", "orders?$orderby=id desc"),
    field("orders?$filter=!id", "write not id", ""),
];

pub(super) const SQL: &[Mistake] = &[
    filter("orders?$filter=id = 5", "write id eq 5", "orders?$filter=id eq 5"),
    filter("orders?$filter=id == 5", "write id eq 5", "orders?$filter=id eq 5"),
    field("orders?$filter=id=5", "write id eq 5", "orders?$filter=id eq 5"),
    field("orders?$filter=id>=5", "write id ge 5", "orders?$filter=id ge 5"),
    filter("orders?$filter=id <> 5", "write id ne 5", "orders?$filter=id ne 5"),
    filter("orders?$filter=id != 5", "write id ne 5", "orders?$filter=id ne 5"),
    filter("orders?$filter=id > 5", "write id gt 5", "orders?$filter=id gt 5"),
    filter("orders?$filter=id * 2 eq 4", "write id mul 2", "orders?$filter=id mul 2 eq 4"),
    filter("orders?$filter=id eq 1 || id eq 2", "write or", "orders?$filter=id eq 1 or id eq 2"),
    filter("orders?$filter=id eq 1 %26%26 id eq 2", "write and", "orders?$filter=id eq 1 and id eq 2"),
    filter(
        "orders?$filter=id between 1 and 5",
        "write id ge 1 and id le 5",
        "orders?$filter=id ge 1 and id le 5",
    ),
    filter("orders?$filter=id NOT IN (1,2)", "write not (id in (1,2))", "orders?$filter=not (id in (1,2))"),
    filter(
        "orders?$filter=shipped_on IS NULL",
        "write shipped_on eq null",
        "orders?$filter=shipped_on eq null",
    ),
    filter(
        "orders?$filter=shipped_on is not null",
        "write shipped_on ne null",
        "orders?$filter=shipped_on ne null",
    ),
    filter(
        "customers?$filter=name like 'A%25'",
        "write startswith(name,'A')",
        "customers?$filter=startswith(name,'A')",
    ),
    filter(
        "customers?$filter=lower(name) eq 'ada'",
        "write tolower(name)",
        "customers?$filter=tolower(name) eq 'ada'",
    ),
    filter("customers?$filter=name = \"Ada\"", "write name eq 'Ada'", "customers?$filter=name eq 'Ada'"),
];
