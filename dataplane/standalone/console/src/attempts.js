// What a subscription sent, with the answers, and the batches that it gave up.
import { button, element, get } from "./page.js";

// Both: an element, and what fills it again.
export function deliveries(address) {
  return panel("Deliveries", "No message was sent yet.", async () => (await get(`${address}/deliveries`)).deliveries, delivery);
}

// `redrive` sends again what stands at a path below the subscription.
export function deadLetters(address, redrive) {
  const make = (it) => deadLetter(it, address, redrive);
  const found = panel("Dead letters", "There is no dead letter.", async () => (await get(`${address}/dead-letters`)).deadLetters, make);
  const all = button("Send all again", () => redrive("/dead-letters/redrive"));
  found.element.prepend(element("p", { class: "actions" }, all));
  return found;
}

function panel(label, none, look, make) {
  const list = element("ol", { class: "attempts", "aria-label": label });
  const empty = element("p", { class: "none", hidden: "" }, none);
  let seen;
  const refresh = async () => {
    const items = await look();
    const now = JSON.stringify(items);
    if (now === seen) return;
    seen = now;
    const opened = new Set([...list.querySelectorAll("details[open]")].map((it) => it.dataset.id));
    list.replaceChildren(...items.map((it) => element("li", {}, make(it))));
    for (const it of list.querySelectorAll("details")) it.open = opened.has(it.dataset.id);
    empty.hidden = items.length > 0;
  };
  return { element: element("div", {}, list, empty), refresh };
}

function delivery(it) {
  const events = it.events === 1 ? "1 event" : `${it.events} events`;
  const made = entry(it.id, it.at, it.error === null, `${it.error ?? `delivered: ${it.status}`}; attempt ${it.attempt}, ${events}, ${it.durationMs} ms`);
  made.append(
    element("p", { class: "none" }, `Batch ${it.batch}${it.firstEvent ? `, events ${it.firstEvent} to ${it.lastEvent}` : ""}, ${it.bytes} bytes`),
    text("Request", it.request, "The body of a message that was delivered is not stored."),
    text("Response", it.response, "There was no response."),
  );
  return made;
}

function deadLetter(it, address, redrive) {
  const events = it.events === 1 ? "1 event" : `${it.events} events`;
  const state = it.deliveredAt ? "delivered since" : it.redriveRequestedAt ? "is sent again" : (it.lastError ?? "given up");
  const made = entry(it.id, it.at, it.deliveredAt !== null, `${state}; ${events}, ${it.attempts} attempts`);
  const path = `/dead-letters/${encodeURIComponent(it.id)}`;
  const changes = element("ul", { class: "relationships" });
  // which changes it holds is asked for by those who look
  made.addEventListener("toggle", async () => {
    if (!made.open || changes.childElementCount > 0) return;
    const found = await get(`${address}${path}`).then((one) => one.changes.map(change), (error) => [error.message]);
    changes.replaceChildren(...found.map((it) => element("li", {}, it)));
  });
  made.append(changes);
  if (!it.deliveredAt) made.append(element("p", { class: "actions" }, button("Send again", () => redrive(`${path}/redrive`))));
  return made;
}

const change = ({ EventId, op, entity }) => `${op} of ${entity ?? "a table that the key does not read"} (${EventId})`;

function entry(id, at, isGood, summary) {
  const time = element("time", { datetime: at }, new Date(at).toLocaleTimeString());
  return element("details", { "data-id": id, class: isGood ? "good" : "bad" }, element("summary", {}, time, ` ${summary}`));
}

function text(name, value, none) {
  const body = value === null || value === "" ? element("p", { class: "none" }, none) : element("pre", { tabindex: "0", "aria-label": name }, value);
  return element("div", {}, element("h3", {}, name), body);
}
