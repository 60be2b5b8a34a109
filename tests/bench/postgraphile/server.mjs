// PostGraphile 5 as its documentation serves it with Node.js alone: server.mjs CONNECTION PORT CONNECTIONS.
import { createServer } from "node:http";
import { postgraphile } from "postgraphile";
import { makePgService } from "postgraphile/adaptors/pg";
import { grafserv } from "postgraphile/grafserv/node";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";

const [connectionString, port, max] = process.argv.slice(2);

const pgl = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [
    makePgService({
      connectionString,
      schemas: ["api"],
      poolConfig: { max: Number(max) },
      pgSettings: () => ({ role: "reader", "app.tenant": "t1" }),
    }),
  ],
  grafserv: { graphqlPath: "/graphql", graphiql: false, watch: false },
  grafast: { explain: false },
});
const server = createServer();
await pgl.createServ(grafserv).addTo(server);
server.listen(Number(port), "127.0.0.1");
