// The webhook subscriptions of a key, one card each, looked at again every few seconds.
import { element, get } from "./page.js";
import { Card } from "./subscription.js";

const WEBHOOKS = "/api/ddl/events/webhooks";
const REFRESH_MS = 3000;

let timer;
// answers for a view that was left are dropped
let shown;

export async function draw(container, { key, proxy, document }) {
  close();
  if (!(WEBHOOKS in document.paths)) {
    const what = "This key may read the events of no table, so it has no webhooks. A Tenant captures those of entities with events: true.";
    container.replaceChildren(element("p", { class: "intro" }, what));
    return;
  }
  const mine = (shown = {});
  const base = `${proxy}${WEBHOOKS}`;
  const state = element("p", { class: "intro", role: "status" });
  const list = element("div", { class: "webhooks" });
  const cards = new Map();
  const refresh = async () => {
    const { subscriptions } = await get(base);
    if (shown !== mine) return;
    for (const id of cards.keys()) if (!subscriptions.some((it) => it.id === id)) cards.delete(id);
    for (const it of subscriptions) {
      if (!cards.has(it.id)) cards.set(it.id, new Card(`${base}/${encodeURIComponent(it.id)}`, refresh));
      cards.get(it.id).show(it);
    }
    const elements = subscriptions.map((it) => cards.get(it.id).element);
    if (elements.length !== list.childElementCount || elements.some((it, n) => it !== list.children[n])) list.replaceChildren(...elements);
    const n = subscriptions.length;
    state.textContent = `The key ${key.name} has ${n === 0 ? "no webhook subscription" : n === 1 ? "1 webhook subscription" : `${n} webhook subscriptions`}.`;
  };
  const follow = async () => {
    await refresh().catch((error) => shown === mine && (state.textContent = error.message));
    if (shown === mine) timer = setTimeout(follow, REFRESH_MS);
  };
  await refresh();
  if (shown !== mine) return;
  container.replaceChildren(state, create(), list);
  timer = setTimeout(follow, REFRESH_MS);
}

export function close() {
  clearTimeout(timer);
  shown = undefined;
}

// The answer holds the secret that signs, which no page may hold: the program does not pass such requests on.
function create() {
  const body = JSON.stringify({ name: "orders", url: "https://example.com/hooks", filter: { ops: ["insert", "update"] } });
  const command = [
    `curl -X POST ${location.origin}${WEBHOOKS} \\`,
    "  -H 'X-API-Key: THE KEY' -H 'Content-Type: application/json' \\",
    `  -d '${body}'`,
  ].join("\n");
  return element(
    "details",
    { class: "intro create" },
    element("summary", {}, "Create a subscription"),
    element("p", {}, "The answer shows the secret that signs its messages, once, so it is made with the key and not in this page:"),
    element("pre", { tabindex: "0" }, command),
  );
}
