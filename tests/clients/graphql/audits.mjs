// Runs the audits of graphql-http, and prints those that do not hold.
// Arguments: the folder of the packages, a folder to work in, the address, a key.
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , packages, , url, key] = process.argv;
const { serverAudits } = createRequire(join(packages, "package.json"))("graphql-http");
const fetchFn = (input, init = {}) => fetch(input, { ...init, headers: { ...init.headers, "x-api-key": key } });
const failed = [];
let held = 0;
for (const audit of serverAudits({ url, fetchFn })) {
  const result = await audit.fn();
  if (result.status === "ok") held += 1;
  else failed.push(`${result.status}: ${audit.name}: ${result.reason}`);
}
console.log(JSON.stringify({ held, failed }));
