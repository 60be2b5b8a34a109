// Reads the events of a table with the clients eventsource, graphql-ws and graphql-sse at once, until each has the row `last`,
// through whatever happens to the server meanwhile.
// Arguments: the folder of the packages, a folder to work in, the address, a key. Standard input: JSON with the cursor to
// begin behind, the row `last`, and the row `half`, on which a client writes a file of its name into the folder.
// It prints what each was sent, as JSON.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , packages, work, url, key] = process.argv;
const { after, half, last } = JSON.parse(readFileSync(0, "utf8"));
const require = createRequire(join(packages, "package.json"));
const headers = { "x-api-key": key };

// What one client is sent; `done` when it has the last row.
function reader(name) {
  const events = [];
  let end;
  const done = new Promise((resolve) => (end = resolve));
  const add = (event) => {
    events.push({ id: event.EventId, op: event.op, row: event.key.id });
    if (event.key.id === half) writeFileSync(join(work, name), "");
    if (event.key.id === last) end(events);
  };
  return { add, done };
}

async function overEventSource() {
  const { EventSource } = require("eventsource");
  const { add, done } = reader("eventsource");
  const withKey = (input, init) => fetch(input, { ...init, headers: { ...init.headers, ...headers } });
  const source = new EventSource(`${url}/api/ddl/events/stream?tables=accounts&after=${after}`, { fetch: withKey });
  source.addEventListener("change", (message) => {
    const event = JSON.parse(message.data);
    if (event.EventId !== message.lastEventId) throw new Error(`${event.EventId} has the id ${message.lastEventId}`);
    add(event);
  });
  const events = await done;
  source.close();
  return events;
}

const query = "subscription($after: String) { accounts(after: $after) { EventId op cursor key data } }";

// Both connect again by themselves, and send the variables as they are by then.
function subscribe(client, { add, done }) {
  let cursor = after;
  const variables = {
    get after() {
      return cursor;
    },
  };
  const stop = client.subscribe(
    { query, variables },
    {
      next: ({ data, errors }) => {
        if (errors) throw new Error(JSON.stringify(errors));
        cursor = data.accounts.cursor;
        add(data.accounts);
      },
      error: (error) => {
        throw error;
      },
      complete: () => {},
    },
  );
  return done.then((events) => (stop(), events));
}

const again = { retryAttempts: 1000, shouldRetry: () => true, retryWait: () => new Promise((then) => setTimeout(then, 100)) };

function overWebSocket() {
  const { createClient } = require("graphql-ws");
  const client = createClient({
    url: `${url.replace("http", "ws")}/auth/bank/graphql`,
    webSocketImpl: require("ws"),
    connectionParams: headers,
    ...again,
  });
  return subscribe(client, reader("graphql-ws")).finally(() => client.dispose());
}

function overSse() {
  const { createClient } = require("graphql-sse");
  const { retryWait, retryAttempts } = again;
  const client = createClient({ url: `${url}/auth/bank/graphql`, headers, retry: retryWait, retryAttempts });
  return subscribe(client, reader("graphql-sse")).finally(() => client.dispose());
}

const [eventsource, ws, sse] = await Promise.all([overEventSource(), overWebSocket(), overSse()]);
console.log(JSON.stringify({ eventsource, "graphql-ws": ws, "graphql-sse": sse }));
process.exit(0);
