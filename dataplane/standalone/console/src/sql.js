// One SELECT of a key and its rows as a table. Ctrl-Enter runs it.
import { ask, button, element } from "./page.js";

const SQL = "/api/ddl/sql";
// shows what the key may read, to begin with
const FIRST = `select table_schema, table_name
from information_schema.tables
where table_schema not like 'pg\\_%' and table_schema <> 'information_schema'
order by 1, 2`;

// answers for a view that was left, or to a query before the last, are dropped
let shown;

export function draw(container, { key, proxy, document }) {
  close();
  if (!(SQL in document.paths)) {
    container.replaceChildren(element("p", { class: "intro" }, "This replica does not serve SQL."));
    return;
  }
  const mine = (shown = {});
  const place = `rowgate:${key.tenant}:${key.name}:sql`;
  const query = element("textarea", { "aria-label": "Query", spellcheck: "false", autocapitalize: "off", rows: "6" });
  query.value = localStorage.getItem(place) ?? FIRST;
  const state = element("p", { class: "outcome", role: "status" });
  const result = element("div", { class: "result" });
  const send = async (explain) => {
    localStorage.setItem(place, query.value);
    const asked = (mine.asked = {});
    const is = () => shown === mine && mine.asked === asked;
    state.textContent = "Running.";
    state.classList.remove("bad");
    const began = performance.now();
    try {
      const answer = await ask("POST", `${proxy}${SQL}`, { query: query.value, explain }, exact);
      if (!is()) return;
      const took = `${Math.round(performance.now() - began)} ms`;
      state.textContent = explain ? `The plan, after ${took}.` : `${told(answer)}, after ${took}.`;
      result.replaceChildren(explain ? element("pre", { tabindex: "0" }, JSON.stringify(answer.plan, null, 2)) : table(answer));
    } catch (error) {
      if (!is()) return;
      state.textContent = error.message;
      state.classList.add("bad");
      result.replaceChildren();
    }
  };
  query.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    send(false);
  });
  const actions = element("div", { class: "actions" }, button("Run", () => send(false), { title: "Ctrl-Enter" }));
  // a plan counts rows that a scoped key does not see
  if (!key.scoped) actions.append(button("Explain", () => send(true)));
  const form = element("div", { class: "query" }, query, actions, state);
  container.replaceChildren(form, result);
}

export function close() {
  shown = undefined;
}

// Numbers keep the digits with which they came, where the browser can.
async function exact(response) {
  const raw = (_, value, context) => (typeof value === "number" && context?.source && JSON.rawJSON ? JSON.rawJSON(context.source) : value);
  return JSON.parse(await response.text(), raw);
}

function told({ value, truncated }) {
  if (truncated) return `The first ${value.length} rows`;
  return value.length === 1 ? "1 row" : `${value.length} rows`;
}

function table({ columns, value }) {
  const heads = columns.map(({ name, type }) => element("th", { scope: "col" }, name, element("span", { class: "type" }, type)));
  const rows = value.map((row) => element("tr", {}, ...columns.map(({ name }) => cell(row[name]))));
  return element(
    "table",
    {},
    element("caption", {}, "Rows of the query"),
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
}

function cell(value) {
  if (value === null) return element("td", { class: "absent" }, "NULL");
  return element("td", {}, typeof value === "string" ? value : JSON.stringify(value));
}
