// GraphiQL for one key. Its editors take their workers from files of this origin.
import { GraphiQL } from "graphiql";
import "graphiql/style.css";
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { first } from "./query.js";

const WORKERS = { graphql: "worker-graphql", json: "worker-json" };

globalThis.MonacoEnvironment = {
  getWorker: (_, label) => new Worker(`/console/assets/${WORKERS[label] ?? "worker-editor"}.js`, { name: label }),
};

let root;

export function draw(container, { key, proxy, document }) {
  const address = `${proxy}/auth/${encodeURIComponent(key.tenant)}/graphql`;
  const fetcher = async (request, options) => {
    const response = await fetch(address, {
      method: "POST",
      headers: { ...options?.headers, "Content-Type": "application/json", Accept: "application/graphql-response+json" },
      body: JSON.stringify(request),
    });
    return response.json();
  };
  root?.unmount();
  const mount = globalThis.document.createElement("div");
  container.replaceChildren(mount);
  root = createRoot(mount);
  // each key has a schema of its own, and texts that were typed for another key would not fit
  const storage = prefixed(`rowgate:${key.tenant}:${key.name}:`);
  const initialQuery = first(document, key.tenant);
  root.render(createElement(GraphiQL, { fetcher, storage, defaultQuery: initialQuery, key: address }));
}

// What GraphiQL remembers, apart for each key.
function prefixed(prefix) {
  const names = () => Object.keys(localStorage).filter((name) => name.startsWith(prefix));
  return {
    get length() {
      return names().length;
    },
    getItem: (name) => localStorage.getItem(prefix + name),
    setItem: (name, value) => localStorage.setItem(prefix + name, value),
    removeItem: (name) => localStorage.removeItem(prefix + name),
    clear: () => names().forEach((name) => localStorage.removeItem(name)),
  };
}
