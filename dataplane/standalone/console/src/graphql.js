// GraphiQL for one key. Its editors take their workers from files of this origin.
import { GraphiQL } from "graphiql";
import "graphiql/style.css";
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { getOperationAST } from "graphql";
import { first } from "./query.js";

const WORKERS = { graphql: "worker-graphql", json: "worker-json" };

globalThis.MonacoEnvironment = {
  getWorker: (_, label) => new Worker(`/console/assets/${WORKERS[label] ?? "worker-editor"}.js`, { name: label }),
};

let root;

export function draw(container, { key, proxy, document }) {
  const address = `${proxy}/auth/${encodeURIComponent(key.tenant)}/graphql`;
  const fetcher = async (request, options) => {
    const operation = options?.documentAST && getOperationAST(options.documentAST, request.operationName);
    const isSubscription = operation?.operation === "subscription";
    const Accept = isSubscription ? "text/event-stream" : "application/graphql-response+json";
    const headers = { ...options?.headers, "Content-Type": "application/json", Accept };
    const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(request) });
    return isSubscription && response.ok ? answers(response.body) : response.json();
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

// The answers to a subscription, as the protocol graphql-sse sends them.
async function* answers(body) {
  let text = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + piece).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      if (lines.includes("event: complete")) return;
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      if (data.length > 0) yield JSON.parse(data.join("\n"));
    }
  }
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
