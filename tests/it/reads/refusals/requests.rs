//! The requests of the table, one line each.

/// Whose key is sent.
pub(super) enum Key {
    /// That of the ApiKey with this name.
    Of(&'static str),
    None,
}

pub(super) struct Request {
    pub(super) why: &'static str,
    pub(super) method: &'static str,
    pub(super) key: Key,
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) path: &'static str,
    pub(super) padding: Padding,
}

/// What makes a request too large: so many bytes at the end of the address, in a header more, or as a body.
pub(super) enum Padding {
    None,
    Path(usize),
    Header(usize),
    Body(usize),
}

const fn get(why: &'static str, path: &'static str) -> Request {
    Request { why, method: "GET", key: Key::Of("shop-admin"), headers: &[], path, padding: Padding::None }
}

const fn of(key: &'static str, why: &'static str, path: &'static str) -> Request {
    Request { why, method: "GET", key: Key::Of(key), headers: &[], path, padding: Padding::None }
}

pub(super) const REQUESTS: &[Request] = &[
    get("an option that does not exist", "/auth/shop/api/orders?$top=5"),
    get("an option in another case", "/auth/shop/api/orders?$Filter=id%20eq%201"),
    get("a relationship that is not there", "/auth/shop/api/orders?$expand=customers"),
    get("an option given twice", "/auth/shop/api/orders?$first=1&$first=2"),
    get("a parameter without a name", "/auth/shop/api/orders?=1"),
    get("a parameter of blanks", "/auth/shop/api/orders?%20=1"),
    get("an option without its $", "/auth/shop/api/orders?limit=5"),
    get("a field as a parameter", "/auth/shop/api/orders?id=eq.5"),
    of(
        "south",
        "a field as a parameter that the key may not see",
        "/auth/shop/api/customers?email=eq.x&$first=0",
    ),
    get("a parameter without a value", "/auth/shop/api/orders?$first"),
    get("a page of no rows", "/auth/shop/api/orders?$first=0"),
    get("a page beyond the limit", "/auth/shop/api/orders?$first=1001"),
    get("a page size that is no number", "/auth/shop/api/orders?$first=ten"),
    get("a count that is neither true nor false", "/auth/shop/api/orders?$count=yes"),
    get("a broken escape", "/auth/shop/api/orders?$filter=id%2"),
    get("an escape that is no UTF-8", "/auth/shop/api/orders?$filter=id%20eq%20'%ff'"),
    get("a NUL", "/auth/shop/api/orders?$filter=comment%20eq%20'%00'"),
    get("a key without its value", "/auth/shop/api/orders/id"),
    get("half of a key", "/auth/shop/api/order_lines/order_id/1"),
    get("a field that is no key", "/auth/shop/api/orders/region/north"),
    get("options on a row", "/auth/shop/api/orders/id/1?$first=1"),
    get("a filter that ends too early", "/auth/shop/api/orders?$filter=id%20eq"),
    get("a filter without its closing quote", "/auth/shop/api/orders?$filter=comment%20eq%20'x"),
    get("a filter of another type", "/auth/shop/api/orders?$filter=id%20eq%20'x'"),
    get("a date that is none", "/auth/shop/api/orders?$filter=shipped_on%20eq%202024-02-30"),
    get("a word that no enum has", "/auth/shop/api/orders?$filter=state%20eq%20'lost'"),
    get("an operator that does not exist", "/auth/shop/api/orders?$filter=id%20like%201"),
    get("a function that does not exist", "/auth/shop/api/orders?$filter=startwith(comment,'x')"),
    get("a function of another type", "/auth/shop/api/orders?$filter=year(comment)%20eq%202024"),
    get("too few arguments", "/auth/shop/api/orders?$filter=contains(comment)"),
    get(
        "33 levels",
        concat!(
            "/auth/shop/api/orders?$filter=",
            "(((((((((((((((((((((((((((((((((id eq 1)))))))))))))))))))))))))))))))))"
        ),
    ),
    get("an unknown field in the filter", "/auth/shop/api/orders?$filter=coment%20eq%20'x'"),
    get("an unknown field in the order", "/auth/shop/api/orders?$orderby=regoin"),
    get("an unknown field in the selection", "/auth/shop/api/orders?$select=nothing"),
    of("south", "a field that the key may not see", "/auth/shop/api/customers?$select=email"),
    of("south", "nearly a field that the key may not see", "/auth/shop/api/customers?$select=emai"),
    get("an order in upper case", "/auth/shop/api/orders?$orderby=id%20DESC"),
    get("an order without a direction", "/auth/shop/api/orders?$orderby=id%20sideways"),
    get("an empty order", "/auth/shop/api/orders?$orderby=id,,region"),
    of("slow-key", "an order by what has none", "/auth/slow/api/docs?$orderby=doc"),
    of("slow-key", "a filter by what has no equality", "/auth/slow/api/docs?$filter=place%20eq%20%27x%27"),
    get("a cursor that is none of ours", "/auth/shop/api/orders?$after=x"),
    get("a key value of another type", "/auth/shop/api/orders/id/x"),
    get("a key value beyond its type", "/auth/shop/api/orders/id/9223372036854775808"),
    get(
        "a computation beyond its type",
        "/auth/shop/api/orders?$filter=id%20mul%209223372036854775807%20gt%201",
    ),
    get("a division by zero", "/auth/shop/api/orders?$filter=id%20div%20(id%20sub%20id)%20gt%201"),
    of("slow-key", "a view that divides by zero", "/auth/slow/api/halves"),
    Request { key: Key::None, ..get("no key", "/auth/shop/api/orders") },
    of("gone-key", "the key of another tenant", "/auth/shop/api/orders"),
    Request {
        headers: &[("Authorization", "Bearer x")],
        ..get("key and token together", "/auth/shop/api/orders")
    },
    Request { headers: &[("X-MS-API-ROLE", "admin")], ..get("another role", "/auth/shop/api/orders") },
    Request {
        method: "OPTIONS",
        headers: &[("Origin", "https://elsewhere.example"), ("Access-Control-Request-Method", "GET")],
        ..get("a page of an origin that is not listed", "/auth/shop/api/orders")
    },
    get("an entity that does not exist", "/auth/shop/api/order"),
    get("an entity whose name none can have", "/auth/shop/api/a%20b"),
    of("south", "an entity that the key may not see", "/auth/shop/api/products"),
    Request {
        padding: Padding::Path(17 << 10),
        ..get("an address beyond 16 KiB", "/auth/shop/api/orders?$filter=comment%20eq%20'")
    },
    Request { padding: Padding::Header(17 << 10), ..get("headers beyond 16 KiB", "/auth/shop/api/orders") },
    Request { padding: Padding::Body(2 << 20), ..get("a body beyond 1 MiB", "/auth/shop/api/orders") },
    of("busy-key", "more requests than the limit", "/auth/busy/api"),
    get("an address that does not exist", "/auth/shop/orders"),
    Request { method: "DELETE", ..get("a method that does not exist here", "/auth/shop/api/orders") },
    Request { method: "GET", ..get("a method that does not exist there", "/api/auth/apikeys/exchange") },
    of("slow-key", "a statement that takes too long", "/auth/slow/api/sleeper"),
    of("slow-key", "an error that nobody foresaw", "/auth/slow/api/broken"),
    of("gone-key", "a database that does not answer", "/auth/gone/api/orders"),
];
