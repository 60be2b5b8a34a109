// Uses the shop with Apollo Client, urql, GraphQL Code Generator and Relay's compiler.
// Arguments: the folder of the packages, a folder to work in, the address, a key. Standard input: the schema as text.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, , packages, work, url, key] = process.argv;
const sdl = readFileSync(0, "utf8");
writeFileSync(join(work, "package.json"), JSON.stringify({ type: "module" }));
writeFileSync(join(work, "schema.graphql"), sdl);
symlinkSync(join(packages, "node_modules"), join(work, "node_modules"));
writeFileSync(
  join(work, "use.mjs"),
  `
import { ApolloClient, HttpLink, InMemoryCache, gql } from "@apollo/client/core";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { Client, fetchExchange } from "@urql/core";
import { codegen } from "@graphql-codegen/core";
import * as typescript from "@graphql-codegen/typescript";
import * as operations from "@graphql-codegen/typescript-operations";
import { buildSchema, parse } from "graphql";

const [, , url, key] = process.argv;
const headers = { "x-api-key": key };
const sdl = readFileSync("schema.graphql", "utf8");
const found = {};

const query = \`query Orders($first: Int, $after: String) {
  orders(first: $first, after: $after, orderBy: { id: DESC }) {
    items { __typename id state customer { name } lines(first: 2) { items { quantity } totalCount } }
    endCursor hasNextPage
  }
}\`;

// Apollo Client pages, over operations that it names by their hash
let requests = 0;
const counting = (input, init) => { requests += 1; return fetch(input, init); };
const http = new HttpLink({ uri: url, headers, fetch: counting });
const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const apollo = new ApolloClient({ link: new PersistedQueryLink({ sha256 }).concat(http), cache: new InMemoryCache() });
const ids = [];
let after = null;
for (let page = 0; page < 3; page += 1) {
  const { data } = await apollo.query({ query: gql(query), variables: { first: 4, after }, fetchPolicy: "network-only" });
  ids.push(...data.orders.items.map((order) => order.id));
  after = data.orders.endCursor;
}
found.apollo = ids;
found.apolloRequests = requests;
const { data: made } = await apollo.mutate({
  mutation: gql("mutation Make($item: CreateCustomersInput!) { createCustomers(item: $item) { id name region } }"),
  variables: { item: { name: "Apollo", email: "apollo@example.com", region: "north", signedUpOn: "2026-01-31" } },
});
found.made = made.createCustomers.name;

// urql reads, and tells errors
const urql = new Client({ url, exchanges: [fetchExchange], fetchOptions: { headers }, preferGetMethod: false });
const read = await urql.query(query, { first: 2 }).toPromise();
found.urql = read.data.orders.items.length;
const wrong = await urql.query("query { orders(first: 0) { items { id } } }", {}).toPromise();
found.urqlError = wrong.error.graphQLErrors[0].extensions.code;

// GraphQL Code Generator
const schemaAst = buildSchema(sdl);
const types = await codegen({
  filename: "types.ts", schema: parse(sdl), schemaAst, config: {},
  plugins: [{ typescript: {} }, { operations: {} }], pluginMap: { typescript, operations },
  documents: [{ document: parse(query) }],
});
found.types = types.includes("OrdersQuery");

writeFileSync("types.ts", types);
console.log(JSON.stringify(found));
`,
);
const used = execFileSync("node", ["use.mjs", url, key], { cwd: work, stdio: ["ignore", "pipe", 2], encoding: "utf8" });
const found = JSON.parse(used);
execFileSync("node", [join(packages, "node_modules/typescript/bin/tsc"), "--strict", "--noEmit", "types.ts"], { cwd: work, stdio: ["ignore", 2, 2] });

// Relay's compiler, without @connection
mkdirSync(join(work, "src"));

writeFileSync(
  join(work, "src/Page.js"),
  'graphql`query PageQuery($first: Int) { orders(first: $first) { items { id ...Page_order } endCursor hasNextPage } }`;\n' +
    "graphql`fragment Page_order on Orders { state customer { name } }`;\n",
);
const relay = { src: "./src", schema: "./schema.graphql", language: "javascript" };
writeFileSync(join(work, "relay.config.json"), JSON.stringify(relay));
const compiler = await import(pathToFileURL(join(packages, "node_modules/relay-compiler/index.js")).href);
const program = compiler.default?.default ?? compiler.default;
execFileSync(typeof program === "string" ? program : program.path, ["relay.config.json"], { cwd: work, stdio: ["ignore", 2, 2] });
found.relay = readFileSync(join(work, "src/__generated__/PageQuery.graphql.js"), "utf8").includes("PageQuery");
console.log(JSON.stringify(found));
