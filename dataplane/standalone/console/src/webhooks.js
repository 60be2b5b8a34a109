// The webhook subscriptions of a key: what became of their deliveries, dead letters, and replays.
import { ask, element } from "./page.js";

const BASE = "/api/ddl/events/webhooks";

export async function draw(container, { proxy, document }) {
  if (!(BASE in document.paths)) {
    const what = "This key may read the events of no table, so that it has no webhooks.";
    container.replaceChildren(element("p", { class: "intro" }, what));
    return;
  }
  const base = `${proxy}${BASE}`;
  const { subscriptions } = await ask("GET", base);
  if (subscriptions.length === 0) {
    const what = "This key has no webhook subscriptions. POST /api/ddl/events/webhooks makes one; the API reference shows how.";
    container.replaceChildren(element("p", { class: "intro" }, what));
    return;
  }
  const again = () => draw(container, { proxy, document });
  const cards = subscriptions.map((it) => card(it, `${base}/${encodeURIComponent(it.id)}`, again));
  container.replaceChildren(button("Refresh", again), ...cards);
}

function card(it, address, again) {
  const said = element("p", { role: "status" });
  // what is done says what became of it, or why not
  const act = async (work) => {
    try {
      said.textContent = await work();
    } catch (error) {
      said.textContent = error.message;
    }
  };
  const below = element("div", {});
  const deliveries = async () => {
    const { deliveries } = await ask("GET", `${address}/deliveries`);
    below.replaceChildren(list("Deliveries", deliveries.map(delivery), "Nothing was sent yet."));
    return "";
  };
  const deadLetters = async () => {
    const { deadLetters } = await ask("GET", `${address}/dead-letters`);
    const items = deadLetters.map((letter) => deadLetter(letter, () => act(() => redrive(`/${letter.id}`))));
    below.replaceChildren(list("Dead letters", items, "There are none."));
    return "";
  };
  const redrive = async (which) => {
    const { deadLetters: n } = await ask("POST", `${address}/dead-letters${which}/redrive`);
    await deadLetters();
    return `Dead letters that are sent again: ${n}.`;
  };
  const test = async () => {
    const { delivered, status, durationMs, error } = await ask("POST", `${address}/test`);
    return delivered ? `The receiver answered ${status} after ${durationMs} ms.` : error;
  };
  const facts = [
    ["State", it.reason === null ? it.state : `${it.state}: ${it.reason}`],
    ["Delivering", it.delivering],
    ["Events waiting", String(it.lagEvents)],
    ["Dead letters", String(it.deadLetters)],
    ["Last delivery", it.lastDelivery ?? "none"],
    ["Last error", it.lastError ?? "none"],
  ];
  return element(
    "article",
    { class: "card", "aria-label": it.name },
    element("h2", {}, it.name),
    element("code", {}, it.url),
    element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    button("Deliveries", () => act(deliveries)),
    button("Dead letters", () => act(deadLetters)),
    button("Send all dead letters again", () => act(() => redrive(""))),
    button("Send a test message", () => act(test)),
    replay(address, act, again),
    said,
    below,
  );
}

function replay(address, act, again) {
  const from = element(
    "select",
    { "aria-label": "Replay from" },
    element("option", { value: "fromRetentionStart" }, "the oldest event that is kept"),
    element("option", { value: "fromEventId" }, "an EventId"),
    element("option", { value: "fromUtc" }, "a time, such as 2026-11-25T08:30:00Z"),
  );
  const value = element("input", { type: "text", "aria-label": "EventId or time" });
  const body = (dryRun) => ({ [from.value]: from.value === "fromRetentionStart" || value.value.trim(), dryRun });
  const send = async (dryRun) => {
    const { from, events } = await ask("POST", `${address}/replay`, body(dryRun));
    const what = `${events} events behind ${from}`;
    if (dryRun) return `A replay would send ${what}.`;
    await again();
    return "";
  };
  return element(
    "fieldset",
    {},
    element("legend", {}, "Replay"),
    from,
    value,
    button("Count", () => act(() => send(true))),
    button("Replay", () => act(() => send(false))),
  );
}

function delivery({ at, attempt, batch, events, durationMs, status, error, request, response }) {
  const outcome = error ?? `answered ${status}`;
  return element(
    "li",
    { class: "card" },
    element("time", { datetime: at }, new Date(at).toLocaleString()),
    ` attempt ${attempt} of `,
    element("code", {}, batch),
    `: events ${events}, ${durationMs} ms, ${outcome}`,
    kept("Request", request),
    kept("Response", response),
  );
}

function deadLetter({ id, at, events, attempts, lastError, deliveredAt, redriveRequestedAt }, redrive) {
  const state = deliveredAt !== null ? "delivered since" : redriveRequestedAt !== null ? "is sent again" : lastError;
  return element(
    "li",
    { class: "card" },
    element("time", { datetime: at }, new Date(at).toLocaleString()),
    " ",
    element("code", {}, id),
    `: events ${events}, attempts ${attempts}, ${state} `,
    deliveredAt === null ? button("Send again", redrive) : "",
  );
}

// The beginning of a text, where one was kept.
function kept(name, text) {
  if (text === null || text === "") return "";
  return element("details", {}, element("summary", {}, name), element("pre", {}, text));
}

function list(name, items, none) {
  if (items.length === 0) return element("p", {}, none);
  return element("ol", { class: "events", "aria-label": name }, ...items);
}

function button(text, work) {
  const made = element("button", { type: "button" }, text);
  made.addEventListener("click", work);
  return made;
}
