// Uses the console of the shop in Chromium, as a person does: picks a key, runs the query with which GraphiQL begins, looks after
// a webhook whose receiver fails first, and sends a request from the API reference.
// Arguments: the folder of the packages, the address, Chromium. Standard input: JSON with the texts of the
// keys, which must not appear in anything that the browser gets, and `pictures`, a folder for pictures, or null.
// It prints what it saw as JSON; a look that fails ends it.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , packages, url, executablePath] = process.argv;
const { keys, pictures } = JSON.parse(readFileSync(0, "utf8"));
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");

// Only the limit of a wait; a page that is ready is not waited for.
const TIMEOUT_MS = 60_000;
// The program is a child of this test, and containers that run tests give Chromium no sandbox of its own.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout: TIMEOUT_MS });

const complaints = [];
const foreign = new Set();
const leaks = new Set();
const bodies = [];
// what the page must not get: of each key and secret the part that is random
const secrets = keys.map((key) => key.slice(key.indexOf("dlk_") + 16, -6));
let answers = 0;

async function open(colorScheme) {
  const context = await browser.newContext({ colorScheme, viewport: { width: 1200, height: 820 }, baseURL: url });
  context.setDefaultTimeout(TIMEOUT_MS);
  // An address beyond the console's is written down, and leads nowhere.
  await context.route(
    (address) => address.origin !== url && !["data:", "blob:"].includes(address.protocol),
    (route) => (foreign.add(route.request().url()), route.abort()),
  );
  const page = await context.newPage();
  page.on("console", (line) => {
    // the one that a page may not make, and the query that no database but another understands
    const is = (path, status) => line.location().url.endsWith(path) && line.text().includes(status);
    const isRefused = is("/api/ddl/events/webhooks", "403") || is("/api/ddl/sql", "400");
    if (["error", "warning"].includes(line.type()) && !isRefused) complaints.push(`${line.type()}: ${line.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
  page.on("websocket", (socket) => foreign.add(socket.url()));
  page.on("worker", (worker) => new URL(worker.url()).origin === url || foreign.add(worker.url()));
  page.on("response", (response) => bodies.push(look(response)));
  // A policy that stops something says so in an event, too.
  await page.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy: ${event.violatedDirective} stops ${event.blockedURI}`),
    ),
  );
  return page;
}

// What the browser got: no secret is in it.
async function look(response) {
  answers += 1;
  // the body of a stream has no end
  const isStream = response.headers()["content-type"] === "text/event-stream";
  const body = isStream ? Buffer.alloc(0) : await response.body().catch(() => Buffer.alloc(0));
  const text = `${JSON.stringify(response.headers())}\n${body.toString("latin1")}`;
  if (secrets.some((secret) => text.includes(secret))) leaks.add(response.url());
  const policy = response.headers()["content-security-policy"] ?? "";
  // a file is no page, and nothing of it runs
  const needed = response.url().includes("/file?token=") ? "default-src 'none'; " : "default-src 'self'; ";
  if (!policy.startsWith(needed)) complaints.push(`no policy: ${response.url()}`);
}

async function picture(page, name) {
  if (pictures !== null) await page.screenshot({ path: join(pictures, `console-${name}.png`) });
}

const tab = (page, name) => page.getByRole("tab", { name, exact: true }).click();
const pick = (page, key) => page.getByLabel("API key").selectOption(`shop/${key}`);

async function entities(page) {
  await page.goto("/");
  await page.getByRole("heading", { name: "orders", exact: true }).waitFor();
  const names = async () => (await page.locator("article h2").allTextContents()).sort();
  const all = await names();
  await pick(page, "south");
  await page.getByText("The key south is the database role").waitFor();
  const fewer = await names();
  await pick(page, "shop-admin");
  await page.getByText("The key shop-admin is the database role").waitFor();
  await page.getByRole("article", { name: "customers" }).getByRole("button", { name: "First 3 rows" }).click();
  const rows = page.getByRole("article", { name: "customers" }).locator("pre");
  await rows.getByText("Bela Costa").waitFor();
  const preview = (await rows.textContent()).split("\n").length;
  await page.getByRole("article", { name: "customers" }).getByRole("button", { name: "First 3 rows" }).click();
  await picture(page, "entities");
  return { all, fewer, preview };
}

// What the answer's editor shows is only what fits: what was answered is read where it arrives.
async function graphql(page) {
  await tab(page, "GraphQL");
  await page.locator(".graphiql-query-editor .view-line").getByText("groupBy").first().waitFor();
  const answered = page.waitForResponse(
    (response) => response.url().endsWith("/graphql") && response.request().postData()?.includes("groupBy"),
  );
  await page.getByRole("button", { name: /Execute query/ }).click();
  const answer = await (await answered).json();
  await page.locator(".result-window").getByText('"customer"').first().waitFor();
  // the editor has asked its worker, which found no mistake
  await page.locator(".graphiql-query-editor .squiggly-error").waitFor({ state: "detached" });
  await picture(page, "graphql");
  return answer;
}

async function completes(page) {
  // Completion works only where the workers of the editor were loaded, and the schema with them.
  const editor = page.locator(".graphiql-query-editor");
  await editor.locator(".view-lines").click();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type("{ cust");
  await page.keyboard.press("Control+Space");
  await editor.locator(".suggest-widget").getByText("customers_by_pk").first().waitFor();
  await page.keyboard.press("Escape");
}

const ORDER = { customer: 7, lines: [{ product: 3, quantity: 2 }] };

// The status of a request that a script of the page makes.
function post(page, path, body) {
  const send = async ([address, body]) => {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
    await response.text();
    return response.status;
  };
  return page.evaluate(send, [`/console/proxy/shop/shop-admin${path}`, body]);
}

// The rows of a query as a table, with all digits of a number; and a refusal in the API's own words.
async function sql(page) {
  await tab(page, "SQL");
  const query = page.getByRole("textbox", { name: "Query" });
  const run = async (text) => {
    await query.fill(text);
    await query.press("ControlOrMeta+Enter");
  };
  const status = page.locator("#sql .outcome");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("cell", { name: "customers", exact: true }).waitFor();
  await run("select id, 12345678901234567890.10 as exact, null as nothing, name from customers order by id limit 2");
  await status.getByText("2 rows").waitFor();
  const cells = await page.locator("#sql tbody tr").first().getByRole("cell").allTextContents();
  await picture(page, "sql");
  await run("select getdate() as now");
  await status.getByText("write now()").waitFor();
  await pick(page, "north");
  await page.getByRole("button", { name: "Run" }).waitFor();
  await page.getByRole("button", { name: "Explain" }).waitFor({ state: "detached" });
  await run("select distinct region from customers");
  await status.getByText("1 row").waitFor();
  const scoped = await page.locator("#sql tbody").textContent();
  const begun = page.waitForEvent("download");
  await page.getByLabel("Format").selectOption("jsonl");
  await page.getByRole("button", { name: "Export" }).click();
  const exported = readFileSync(await (await begun).path(), "utf8");
  await status.getByText("1 row is exported").waitFor();
  await pick(page, "shop-admin");
  return { cells, scoped, exported };
}

// What is written while the page is open appears in it.
async function events(page) {
  await tab(page, "Events");
  await page.getByText("appear here as they happen").waitFor();
  const answered = await post(page, "/auth/shop/api/place_order", ORDER);
  const newest = page.getByRole("list", { name: "Events" }).getByRole("listitem").first();
  await newest.getByText('"customer_id": 7').waitFor();
  const op = await newest.locator(".operation").textContent();
  await picture(page, "events");
  return { answered, op };
}

// A receiver that refuses everything until `accepts` says otherwise, and the types of what it got.
async function receiver() {
  const it = { accepts: false, received: [] };
  it.server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    it.received.push(JSON.parse(text).type);
    response.writeHead(it.accepts ? 204 : 500).end(it.accepts ? undefined : "out of paper");
  });
  await new Promise((resolve) => it.server.listen(0, "127.0.0.1", resolve));
  it.url = `http://127.0.0.1:${it.server.address().port}/hooks`;
  return it;
}

// The subscription is made with the key, outside of the page; its receiver fails, is repaired, and gets what it missed.
async function webhooks(page) {
  const target = await receiver();
  const draft = { name: "new orders", url: target.url, filter: { tables: ["orders"], ops: ["insert"] }, retry: { maxAttempts: 1 } };
  const headers = { "X-API-Key": keys[1], "Content-Type": "application/json" };
  const made = await fetch(`${url}/api/ddl/events/webhooks`, { method: "POST", headers, body: JSON.stringify(draft) });
  const { secret } = await made.json();
  secrets.push(secret.slice("whsec_".length));
  await tab(page, "Webhooks");
  const refused = await post(page, "/api/ddl/events/webhooks", draft);
  const card = page.getByRole("article", { name: "new orders" });
  const outcome = card.getByRole("status");
  const click = (name) => card.getByRole("button", { name, exact: true }).click();

  await click("Send a test");
  await outcome.getByText("was not taken").waitFor();
  const test = await outcome.textContent();
  await post(page, "/auth/shop/api/place_order", ORDER);
  await card.getByText("1, 1 in a row").waitFor();
  await click("Deliveries");
  const delivery = card.getByRole("list", { name: "Deliveries" }).getByRole("listitem").first();
  await delivery.getByText("the receiver answered 500").click();
  const { events } = JSON.parse(await delivery.getByLabel("Request").textContent());
  const response = await delivery.getByLabel("Response").textContent();
  await picture(page, "webhooks");

  target.accepts = true;
  await click("Dead letters");
  const letter = card.getByRole("list", { name: "Dead letters" }).getByRole("listitem").first();
  await letter.getByText("the receiver answered 500").click();
  await letter.getByText("insert of orders").waitFor();
  await letter.getByRole("button", { name: "Send again" }).click();
  await outcome.getByText("sent again").waitFor();
  const redriven = await outcome.textContent();
  await letter.getByText("delivered since").waitFor();

  await click("Replay");
  await card.getByLabel("Replay from").selectOption("fromEventId");
  await card.getByLabel("Event or time").fill(events[0].EventId);
  await click("Count the events");
  await outcome.getByText("would send").waitFor();
  const counted = await outcome.textContent();
  await click("Send them again");
  await outcome.getByText("has begun").waitFor();
  await click("Deliveries");
  // the redrive, and the replay
  await card.getByRole("list", { name: "Deliveries" }).getByText("delivered: 204").nth(1).waitFor();
  await click("Suspend");
  await card.getByRole("button", { name: "Resume" }).waitFor();
  target.server.close();
  const request = [events[0].type, events[0].data.customer_id];
  return { refused, test, request, response, redriven, counted, received: target.received };
}

async function reference(page) {
  await tab(page, "API reference");
  const operation = page.locator("#operations-customers-list_customers");
  await operation.getByRole("button", { name: /customers/ }).first().click();
  await operation.getByRole("button", { name: "Execute" }).waitFor();
  await operation.locator("tr[data-param-name='$first'] input").fill("3");
  const answered = page.waitForResponse((response) => response.url().includes("/api/customers?"));
  await operation.getByRole("button", { name: "Execute" }).click();
  const answer = await answered;
  await operation.locator(".live-responses-table").getByText("Bela Costa").first().waitFor();
  const status = await operation.locator(".live-responses-table .response .response-col_status").first().textContent();
  const curl = await operation.locator(".curl").first().textContent();
  await operation.locator(".responses-inner").scrollIntoViewIfNeeded();
  await picture(page, "reference");
  return { status: parseInt(status), sent: new URL(answer.url()).pathname, rows: (await answer.json()).value.length, curl };
}

const page = await open("light");
const seen = { entities: await entities(page), graphql: await graphql(page) };
await completes(page);
seen.sql = await sql(page);
seen.events = await events(page);
seen.webhooks = await webhooks(page);
seen.reference = await reference(page);

// The same in the dark, by the keyboard alone, and by the address that the page has kept.
const dark = await open("dark");
await dark.goto("/#shop/north/entities");
await dark.getByText("The key north is the database role").waitFor();
seen.ground = await dark.evaluate(() => getComputedStyle(document.body).backgroundColor);
await dark.getByRole("tab", { name: "Entities" }).focus();
await dark.keyboard.press("ArrowRight");
await dark.locator(".graphiql-query-editor .view-line").getByText("groupBy").first().waitFor();
seen.hash = new URL(dark.url()).hash;
await dark.keyboard.press("End");
await dark.locator(".swagger-ui .opblock").first().waitFor();

// Another page on this machine gets nothing of it.
const other = await (await browser.newContext()).newPage();
await other.goto("data:text/html,<title>other</title>");
seen.other = await other.evaluate(async (url) => {
  const asked = [`${url}/`, `${url}/console/keys.json`, `${url}/console/proxy/shop/shop-admin/auth/shop/api/customers`];
  return Promise.all(asked.map((address) => fetch(address).then((it) => `${it.status}`, () => "refused")));
}, url);

// What is asked for from here on, every five seconds, is what was looked at before.
await Promise.all(bodies);
await browser.close();
console.log(JSON.stringify({ ...seen, complaints, foreign: [...foreign], leaks: [...leaks], answers }));
