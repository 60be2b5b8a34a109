// A program over the client that openapi-typescript and openapi-fetch make of the shop's document: it reads, pages, writes and calls.
// Each line after @ts-expect-error would be a mistake, which the compiler has to find.
import createClient from "openapi-fetch";
import type { components, paths } from "./document.js";

declare const process: { argv: string[] };
const [, , baseUrl, key] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { "X-API-Key": key } });

function is(what: string, found: unknown, expected: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
  }
}

// reading
const order = await client.GET("/auth/shop/api/orders/id/{id}", { params: { path: { id: 7 } } });
is("an order", [order.response.status, order.data?.value[0]?.id], [200, 7]);
const state: "new" | "paid" | "shipped" | "returned" | undefined = order.data?.value[0]?.state;
const wrong = await client.GET("/auth/shop/api/orders", { params: { query: { $filter: "region" } } });
is("a refusal", wrong.error?.error.code, "InvalidFilter");
// @ts-expect-error there is no such entity
void (() => client.GET("/auth/shop/api/employees"));
// @ts-expect-error there is no such field
void order.data?.value[0]?.salary;
// @ts-expect-error a view without INSERT has no rows made
void (() => client.POST("/auth/shop/api/order_summary", { body: {} }));

// paging
type Order = components["schemas"]["orders"];
const orders: Order[] = [];
let after: string | undefined;
let count: number | undefined;
do {
  const page = await client.GET("/auth/shop/api/orders", {
    params: { query: { $filter: "state eq 'paid'", $orderby: "placed_at desc", $first: 20, $after: after, $count: true } },
  });
  orders.push(...(page.data?.value ?? []));
  count = page.data?.count;
  after = page.data?.nextLink && (new URL(page.data.nextLink).searchParams.get("$after") ?? undefined);
} while (after);
is("the pages", [orders.length, new Set(orders.map((it) => it.id)).size, 20 < orders.length], [count, count, true]);

// writing
const email = "typescript@example.com";
const created = await client.POST("/auth/shop/api/customers", {
  body: { name: "Tess", email, region: "north", signedUpOn: "2026-01-31" },
});
const id = created.data && created.data.value[0]?.id;
is("a customer", [created.response.status, created.response.headers.get("location")], [201, `${baseUrl}/auth/shop/api/customers/id/${id}`]);
if (id === undefined) throw new Error("no id");
const path = { id };
const changed = await client.PATCH("/auth/shop/api/customers/id/{id}", { params: { path }, body: { rating: 4.5 } });
is("a change", [changed.response.status, changed.data?.value[0]?.rating, changed.data?.value[0]?.name], [200, 4.5, "Tess"]);
const replaced = await client.PUT("/auth/shop/api/customers/id/{id}", {
  params: { path, header: { "If-Match": "*" } },
  body: { name: "Tess", email, region: "south", signedUpOn: "2026-01-31" },
});
is("a replacement", [replaced.response.status, replaced.data?.value[0]?.rating], [200, null]);
const minimal = await client.PATCH("/auth/shop/api/customers/id/{id}", {
  params: { path, header: { Prefer: "return=minimal" } },
  body: { newsletter: true },
});
is("nothing back", [minimal.response.status, minimal.data], [204, undefined]);
const deleted = await client.DELETE("/auth/shop/api/customers/id/{id}", { params: { path } });
is("a deletion", deleted.response.status, 204);
const gone = await client.DELETE("/auth/shop/api/customers/id/{id}", { params: { path } });
is("nothing to delete", gone.error?.error.code, "RowNotFound");
// @ts-expect-error the region is missing
void (() => client.POST("/auth/shop/api/customers", { body: { name: "Tess", email, signedUpOn: "2026-01-31" } }));
// @ts-expect-error rows of a protected table are not deleted
void (() => client.DELETE("/auth/shop/api/stock/product_id/{product_id}", { params: { path: { product_id: 1 } } }));

// a version
const shelf = { path: { product_id: 3 } };
const stock = await client.GET("/auth/shop/api/stock/product_id/{product_id}", { params: shelf });
const version = stock.data?.value[0]?.dl_expected_ts;
const body = { quantity: 8, dl_expected_ts: version };
const counted = await client.PATCH("/auth/shop/api/stock/product_id/{product_id}", { params: shelf, body });
is("a count", [counted.response.status, counted.data?.value[0]?.quantity], [200, 8]);
const stale = await client.PATCH("/auth/shop/api/stock/product_id/{product_id}", { params: shelf, body });
is("a stale count", stale.error?.error.code, "StaleRow");

// calling
const sellers = await client.POST("/auth/shop/api/best_sellers", { body: { top: 3 } });
const titles: (string | null)[] = (sellers.data?.value ?? []).map((it) => it.title);
is("best sellers", [sellers.response.status, titles.length], [201, 3]);
const placed = await client.POST("/auth/shop/api/place_order", {
  body: { customer: 1, lines: [{ product: 2, quantity: 1 }] },
});
is("an order is placed", [placed.response.status, typeof placed.data?.value[0]?.order_id], [201, "number"]);

// a token
const token = await client.POST("/api/auth/apikeys/exchange");
is("a token", token.data?.expiresIn, 3600);
console.log(JSON.stringify({ state, orders: orders.length, titles: titles.length }));
