// The entities of a key with their fields, relationships and operations, as openapi.json describes them.
import { element, get } from "./page.js";

const OPERATIONS = { get: "read", post: "create", patch: "change", put: "replace", delete: "delete" };
const PREVIEW_ROWS = 3;

export function draw(container, { key, proxy, document }) {
  const found = entities(document, key.tenant);
  const intro = element(
    "p",
    { class: "intro" },
    `The key ${key.name} is the database role `,
    element("code", {}, key.role),
    ` and may use ${found.length} ${found.length === 1 ? "entity" : "entities"} of ${key.tenant}. Row-level security decides which rows it sees.`,
  );
  const base = `/auth/${encodeURIComponent(key.tenant)}/api`;
  container.replaceChildren(intro, element("div", { class: "cards" }, ...found.map((it) => card(it, proxy, base))));
}

// By name: the operations on rows, whether it is a routine, and the fields.
export function entities(document, tenant) {
  const found = new Map();
  const prefix = `/auth/${tenant}/api/`;
  for (const [path, item] of Object.entries(document.paths)) {
    if (!path.startsWith(prefix)) continue;
    const name = decodeURIComponent(path.slice(prefix.length).split("/")[0]);
    const entity = found.get(name) ?? described(name, document.components.schemas);
    for (const [method, operation] of Object.entries(OPERATIONS)) {
      if (method in item) entity.operations.add(entity.isRoutine ? "call" : operation);
    }
    found.set(name, entity);
  }
  return [...found.values()].sort((a, b) => a.isRoutine - b.isRoutine || a.name.localeCompare(b.name));
}

// Without the operations, which its paths tell.
function described(name, schemas) {
  const isRoutine = `${name}.call` in schemas;
  const schema = schemas[isRoutine ? `${name}.call` : name] ?? {};
  return { name, isRoutine, operations: new Set(), fields: fields(schema), relationships: relationships(schema) };
}

// A column describes its type of PostgreSQL; a relationship leads to another schema.
function fields(schema) {
  return Object.entries(schema.properties ?? {})
    .filter(([name, of]) => of.description !== undefined && !name.includes("@") && leadsTo(of) === undefined)
    .map(([name, of]) => ({ name, type: of.description.split("\n")[0], nullable: [of.type].flat().includes("null") }));
}

function relationships(schema) {
  return Object.entries(schema.properties ?? {})
    .filter(([, of]) => leadsTo(of) !== undefined)
    .map(([name, of]) => ({ name, to: leadsTo(of), isMany: of.type === "array" }));
}

function leadsTo(schema) {
  const reference = schema.items?.$ref ?? schema.anyOf?.find((it) => it.$ref)?.$ref;
  return reference?.split("/").at(-1);
}

function card(entity, proxy, base) {
  const { name, operations, isRoutine } = entity;
  const heading = `entity-${name}`;
  const address = `${base}/${encodeURIComponent(name)}`;
  const made = element(
    "article",
    { class: "card", "aria-labelledby": heading },
    element("h2", { id: heading }, name),
    element("p", { class: "operations" }, ...[...operations].map((it) => element("span", { class: "operation" }, it))),
    element("code", { class: "address" }, `${isRoutine ? "POST" : "GET"} ${address}`),
    table(entity),
  );
  if (entity.relationships.length > 0) {
    const items = entity.relationships.map(({ name, to, isMany }) =>
      element("li", {}, element("code", {}, name), ` ${isMany ? "many" : "one"} of ${to}`),
    );
    made.append(element("h3", {}, "Relationships"), element("ul", { class: "relationships" }, ...items));
  }
  if (operations.has("read")) made.append(preview(name, `${proxy}${address}`));
  return made;
}

function table({ fields, isRoutine, name }) {
  if (fields.length === 0) return element("p", { class: "none" }, isRoutine ? "It takes no parameter." : "It shows no field.");
  const rows = fields.map(({ name, type, nullable }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      element("td", {}, type),
      element("td", { class: "null" }, nullable ? "null" : ""),
    ),
  );
  return element(
    "table",
    {},
    element("caption", {}, isRoutine ? `Parameters of ${name}` : `Fields of ${name}`),
    element("tbody", {}, ...rows),
  );
}

function preview(name, address) {
  const rows = element("pre", { hidden: "", tabindex: "0", "aria-label": `Rows of ${name}` });
  const button = element("button", { type: "button", "aria-expanded": "false" }, `First ${PREVIEW_ROWS} rows`);
  button.addEventListener("click", async () => {
    const opens = rows.hidden;
    button.setAttribute("aria-expanded", String(opens));
    if (opens) {
      rows.textContent = await get(`${address}?$first=${PREVIEW_ROWS}`).then(
        (page) => page.value.map((row) => JSON.stringify(row)).join("\n") || "This key sees no row.",
        (error) => error.message,
      );
    }
    rows.hidden = !opens;
  });
  return element("div", { class: "preview" }, button, rows);
}
