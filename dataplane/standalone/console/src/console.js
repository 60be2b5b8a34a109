// The frame of the console: which key, which view, and what the address bar says of both.
import * as entities from "./entities.js";
import * as events from "./events.js";
import { element, get } from "./page.js";
import * as sql from "./sql.js";
import * as webhooks from "./webhooks.js";

const VIEWS = ["entities", "graphql", "sql", "events", "webhooks", "reference"];
// those of this script; the others are loaded when they are looked at
const OWN = { entities, events, sql, webhooks };
// how often the keys are asked for again, so that a revoked one disappears
const REFRESH_MS = 5000;

// Swagger UI asks for a class, and GraphiQL and our own style for what the browser prefers
const dark = matchMedia("(prefers-color-scheme: dark)");
const darken = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", darken);
darken();

const picker = document.getElementById("key");
const notice = document.getElementById("notice");
const tabs = VIEWS.map((view) => document.getElementById(`tab-${view}`));

let keys = [];
let shown;

// #shop/shop-admin/graphql
function wanted() {
  const [tenant, name, view] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const key = keys.find((key) => key.tenant === tenant && key.name === name) ?? keys.find((key) => !key.scoped) ?? keys[0];
  return { key, view: VIEWS.includes(view) ? view : "entities" };
}

function go(key, view) {
  location.hash = [key.tenant, key.name, view].map(encodeURIComponent).join("/");
}

function say(text) {
  notice.textContent = text;
  notice.hidden = text === "";
}

// Below this address the program adds the key.
function proxy(key) {
  return `${location.origin}/console/proxy/${encodeURIComponent(key.tenant)}/${encodeURIComponent(key.name)}`;
}

function drawPicker() {
  const groups = new Map();
  for (const key of keys) {
    const rights = key.scoped ? "scoped" : "shared rights";
    const option = element("option", { value: `${key.tenant}/${key.name}` }, `${key.name} (${rights})`);
    if (!groups.has(key.tenant)) groups.set(key.tenant, element("optgroup", { label: key.tenant }));
    groups.get(key.tenant).append(option);
  }
  picker.replaceChildren(...groups.values());
  picker.disabled = keys.length === 0;
}

async function draw() {
  const { key, view } = wanted();
  for (const [n, tab] of tabs.entries()) {
    tab.setAttribute("aria-selected", String(VIEWS[n] === view));
    tab.tabIndex = VIEWS[n] === view ? 0 : -1;
    document.getElementById(VIEWS[n]).hidden = VIEWS[n] !== view;
  }
  document.body.dataset.view = view;
  if (key === undefined) {
    VIEWS.forEach((view) => document.getElementById(view).replaceChildren());
    shown = undefined;
    return say("No key works yet. The terminal in which Rowgate runs says why; this page updates by itself.");
  }
  picker.value = `${key.tenant}/${key.name}`;
  document.title = `${key.tenant}: ${key.name} - Rowgate console`;
  const what = `${key.tenant}/${key.name}/${view}`;
  if (shown === what) return;
  shown = what;
  events.close();
  sql.close();
  webhooks.close();
  say("Loading.");
  const container = document.getElementById(view);
  try {
    const document_ = await get(`${proxy(key)}/auth/${encodeURIComponent(key.tenant)}/openapi.json`);
    if (shown !== what) return;
    const module = OWN[view] ?? (await load(view));
    if (shown !== what) return;
    await module.draw(container, { key, proxy: proxy(key), document: document_ });
    say("");
  } catch (error) {
    if (shown !== what) return;
    // the next look draws it again
    shown = undefined;
    container.replaceChildren();
    say(error.message);
  }
}

// The script of a view and its style, once.
async function load(view) {
  const href = `/console/assets/${view}.css`;
  if (!document.querySelector(`link[href="${href}"]`)) {
    const link = element("link", { rel: "stylesheet", href });
    const loaded = new Promise((resolve, reject) => {
      link.onload = resolve;
      link.onerror = () => reject(new Error(`${href} could not be loaded; reload the page.`));
    });
    document.head.append(link);
    await loaded;
  }
  // a name that the bundler does not see, or it would put both views into this script
  const script = `/console/assets/${view}.js`;
  return import(script);
}

async function refresh() {
  let now;
  try {
    now = await get("/console/keys.json");
  } catch (error) {
    return say(error.message);
  }
  if (JSON.stringify(now) !== JSON.stringify(keys)) {
    keys = now;
    drawPicker();
  }
  await draw();
}

picker.addEventListener("change", () => {
  const [tenant, name] = picker.value.split("/");
  go({ tenant, name }, wanted().view);
});
for (const [n, tab] of tabs.entries()) {
  tab.addEventListener("click", () => {
    const { key } = wanted();
    if (key !== undefined) go(key, VIEWS[n]);
  });
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: VIEWS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + VIEWS.length) % VIEWS.length];
    next.focus();
    next.click();
  });
}
window.addEventListener("hashchange", draw);

async function follow() {
  await refresh();
  setTimeout(follow, REFRESH_MS);
}
follow();
