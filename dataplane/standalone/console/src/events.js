// The events of a key as they happen, the newest first.
import { element } from "./page.js";

const STREAM = "/api/ddl/events/stream";
const MAX_SHOWN = 200;

let source;

export function draw(container, { key, proxy, document }) {
  close();
  if (!(STREAM in document.paths)) {
    const what = "This key may read the events of no table. A Tenant captures those of entities with events: true.";
    container.replaceChildren(element("p", { class: "intro" }, what));
    return;
  }
  const state = element("p", { class: "intro", role: "status" }, "Connecting.");
  const list = element("ol", { class: "events", "aria-label": "Events" });
  container.replaceChildren(state, list);
  const say = (text) => (state.textContent = text);
  const add = (item) => {
    list.prepend(item);
    while (list.childElementCount > MAX_SHOWN) list.lastElementChild.remove();
  };
  source = new EventSource(`${proxy}${STREAM}`);
  source.onopen = () => say(`Changes of rows that the key ${key.name} sees appear here as they happen.`);
  source.onerror = () => say("The stream has ended; the page connects again, and goes on where it was.");
  source.addEventListener("change", ({ data }) => add(row(JSON.parse(data))));
  source.addEventListener("reset", () => add(element("li", {}, "Events before this were lost: read the rows again.")));
}

// Of no view any more.
export function close() {
  source?.close();
  source = undefined;
}

function row({ op, entity, key, data, occurredAt }) {
  return element(
    "li",
    { class: "card" },
    element("span", { class: "operation" }, op),
    ` ${entity} `,
    element("code", {}, key === undefined ? "" : JSON.stringify(key)),
    element("time", { datetime: occurredAt }, new Date(occurredAt).toLocaleTimeString()),
    data === undefined ? "" : element("pre", {}, JSON.stringify(data, null, 2)),
  );
}
