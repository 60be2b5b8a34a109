// The card of one webhook subscription: how far it has come, what was sent and what was given up, and what can be done about it.
import { ask, button, element } from "./page.js";
import { deadLetters, deliveries } from "./attempts.js";

// The API counts no further.
const MAX_LAG = 10000;

const PLACES = {
  fromRetentionStart: "the oldest event that is kept",
  fromEventId: "an event, by its EventId",
  fromUtc: "a time, such as 2026-11-25T08:30:00Z",
};

export class Card {
  #address;
  // looks at the list again
  #refresh;
  #seen;
  #state = element("p", { class: "operations" });
  #facts = element("table");
  #actions = element("p", { class: "actions" });
  #outcome = element("p", { class: "outcome", role: "status" });
  #panel = element("div", { class: "panel" });
  #open;

  constructor(address, refresh) {
    [this.#address, this.#refresh] = [address, refresh];
    this.element = element("article", { class: "card" });
  }

  show(it) {
    const now = JSON.stringify(it);
    if (now !== this.#seen) this.#draw(it);
    this.#seen = now;
    this.#open?.refresh().catch((error) => this.#say(error.message));
  }

  #draw(it) {
    const heading = `webhook-${it.id}`;
    this.#state.replaceChildren(element("span", { class: "operation" }, state(it)));
    this.#facts.replaceChildren(element("caption", {}, `State of ${it.name}`), element("tbody", {}, ...facts(it)));
    // the buttons stay, or a keyboard would lose its place with each event
    const kind = `${it.suspend} ${it.state} ${it.origin}`;
    if (this.#actions.dataset.kind !== kind) this.#actions.replaceChildren(...this.#buttons(it));
    this.#actions.dataset.kind = kind;
    if (this.element.childElementCount > 0) return;
    this.element.setAttribute("aria-labelledby", heading);
    this.element.append(
      element("h2", { id: heading }, it.name),
      this.#state,
      element("code", { class: "address" }, `POST ${it.url}`),
      this.#facts,
      this.#actions,
      this.#outcome,
      this.#panel,
    );
  }

  #buttons(it) {
    const act = (text, method, path, body, said) => button(text, () => this.#do(method, path, body, said));
    const own = it.origin === "api";
    const stopped = it.suspend || it.state === "disabled";
    const looks = [
      button("Deliveries", () => this.#toggle("deliveries", deliveries(this.#address))),
      button("Dead letters", () => this.#toggle("dead letters", deadLetters(this.#address, (path) => this.#redrive(path)))),
      button("Replay", () => this.#toggle("replay", this.#replay())),
      act("Send a test", "POST", "/test", undefined, tested),
    ];
    if (!own) return looks;
    const again = it.state === "disabled" ? "Enable" : "Resume";
    return [...looks, act(stopped ? again : "Suspend", "PATCH", "", { suspend: !stopped }, () => (stopped ? "It goes on." : "It is suspended."))];
  }

  #say(text) {
    this.#outcome.textContent = text;
  }

  async #do(method, path, body, said) {
    this.#say("Asking.");
    try {
      this.#say(said(await ask(method, `${this.#address}${path}`, body)));
      await this.#refresh();
    } catch (error) {
      this.#say(error.message);
    }
  }

  #redrive(path) {
    return this.#do("POST", path, undefined, ({ deadLetters: n }) => `${n === 1 ? "1 dead letter is" : `${n} dead letters are`} sent again.`);
  }

  // One panel at a time; the button that opened it closes it.
  #toggle(name, panel) {
    const closes = this.#open?.name === name;
    this.#open = closes ? undefined : { name, refresh: panel.refresh };
    this.#panel.replaceChildren(...(closes ? [] : [panel.element]));
    if (!closes) panel.refresh().catch((error) => this.#say(error.message));
  }

  #replay() {
    const place = element("select", { "aria-label": "Replay from" });
    for (const [name, text] of Object.entries(PLACES)) place.append(element("option", { value: name }, text));
    const value = element("input", { "aria-label": "Event or time", autocomplete: "off", hidden: "" });
    place.addEventListener("change", () => (value.hidden = place.value === "fromRetentionStart"));
    const replay = (dryRun) => {
      const from = place.value === "fromRetentionStart" || value.value.trim();
      return this.#do("POST", "/replay", { [place.value]: from, dryRun }, (answer) => replayed(answer, dryRun));
    };
    const form = element(
      "p",
      { class: "actions" },
      "Send again from ",
      place,
      value,
      button("Count the events", () => replay(true)),
      button("Send them again", () => replay(false)),
    );
    return { element: form, refresh: async () => {} };
  }
}

function state(it) {
  if (it.state === "disabled") return `disabled: ${it.reason}`;
  if (it.suspend) return "suspended";
  return { OwnerInactive: "enabled, but its key is inactive", Failing: "enabled, failing" }[it.delivering] ?? "enabled";
}

function facts(it) {
  const time = (text) => (text === null ? "never" : new Date(text).toLocaleString());
  const rows = {
    Events: `${it.filter.ops.join(", ")} of ${it.filter.tables?.join(", ") ?? "all tables that the key may read"}`,
    "Not delivered": `${it.lagEvents >= MAX_LAG ? `${MAX_LAG} or more` : it.lagEvents}${it.oldestUndelivered ? `, since ${time(it.oldestUndelivered)}` : ""}`,
    "Last delivery": time(it.lastDelivery),
    "Dead letters": `${it.deadLetters}, ${it.consecutiveDeadLetters} in a row`,
    ...(it.lastError && { "Last error": it.lastError }),
    ...(it.payloadQuery && { "Payload query": element("code", {}, it.payloadQuery) }),
    ...(it.origin !== "api" && { "Managed by": "a WebhookSubscription in Kubernetes" }),
  };
  return Object.entries(rows).map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)));
}

function tested({ status, durationMs, error }) {
  return error === null ? `The receiver took the test message: ${status}, in ${durationMs} ms.` : `The test message was not taken: ${error}.`;
}

function replayed({ events, from }, dryRun) {
  const n = events >= MAX_LAG ? `${MAX_LAG} or more events` : events === 1 ? "1 event" : `${events} events`;
  return dryRun ? `A replay would send ${n}.` : `A replay of ${n} has begun behind ${from}.`;
}
