// Verifies requests of webhooks with stripe and standardwebhooks as a receiver would.
//
// Standard input: {"packages", "cases": [{"headers", "body", "secret"}]}. Standard output: for each case
// {"stripe", "standardwebhooks"}, whether it is accepted.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const given = JSON.parse(readFileSync(0, "utf8"));
const load = createRequire(join(given.packages, "node_modules/x.js"));
const Stripe = load("stripe");
const { Webhook } = load("standardwebhooks");
const webhooks = new (Stripe.default ?? Stripe)("sk_test_none").webhooks;

function accepts(verify) {
  try {
    verify();
    return true;
  } catch {
    return false;
  }
}

console.log(JSON.stringify(given.cases.map(({ headers, body, secret }) => ({
  stripe: accepts(() => webhooks.constructEvent(body, headers["rowgate-signature"], secret)),
  standardwebhooks: accepts(() => new Webhook(secret).verify(body, headers)),
}))));
