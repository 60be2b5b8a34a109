// Runs a client round by round, and compares how many rows each statement said it touched, and which fields each answer had,
// with what was so before.
//
// Standard output: each second {"writes", "errors", "wrong_counts"} since the line before, with "compared", whether there is
// something to compare with by now; at the end {"done", "rounds", "compared"} and how many writes, errors and wrong counts in all.

import { AsyncLocalStorage } from "node:async_hooks";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

// The first rounds fill the caches of Unleash; the next ones are what later ones are compared with.
const WARM_UP = 2;
const LEARNING = 3;
const TOLD = 5;
const WRITES = ["INSERT", "UPDATE", "DELETE", "COPY", "MERGE"];

// What a value looks like, without its contents: the names of its fields, at every depth.
function fields(value) {
  if (Array.isArray(value)) return [...new Set(value.map((one) => JSON.stringify(fields(one))))].sort();
  if (value === null || typeof value !== "object") return "";
  return Object.keys(value).sort().map((name) => [name, fields(value[name])]);
}

class Watch {
  #path;
  #concurrent;
  #known = {};
  learning = true;
  warm = false;
  step = new AsyncLocalStorage();
  writes = 0;
  errors = [];
  wrong = [];

  constructor(path, concurrent) {
    this.#path = path;
    this.#concurrent = concurrent;
    if (path && existsSync(path)) {
      this.#known = JSON.parse(readFileSync(path, "utf8"));
      this.learning = false;
    }
  }

  // Knex calls this after every statement, with the result as PostgreSQL gave it.
  statement(_, { sql, response }) {
    const step = this.step.getStore() ?? "";
    const verb = response?.command;
    if (WRITES.includes(verb)) this.writes += 1;
    const compared = WRITES.includes(verb) || (verb === "SELECT" && !this.#concurrent.includes(step));
    if (step === "" || !compared) return;
    // values and the length of lists are no part of a statement
    const shape = sql.replace(/\s+/g, " ").replace(/'(?:[^']|'')*'|\$?\b\d+\b/g, "$")
      .replace(/\$(, \$)+/g, "$").replace(/\(\$\)(, \(\$\))+/g, "($)");
    this.#compare(`${step}: ${shape}`, response.rowCount, WRITES.includes(verb), "its rows are");
  }

  answer(step, request, value) {
    this.#compare(`${step}: ${request}`, JSON.stringify(fields(value)), true, "its fields are");
  }

  #compare(key, found, always, what) {
    // what tidies up after an error is compared with nothing
    if (!this.warm || key.startsWith("repair: ")) return;
    const known = this.#known[key];
    if (this.learning) {
      if (!known) this.#known[key] = [found];
      else if (!known.includes(found)) known.push(found);
    } else if (!known) {
      // Unleash looks some settings up once a minute
      if (always) this.wrong.push(`never sent before: ${key.slice(0, 400)}`);
    } else if (!known.includes(found) && (always || known.length === 1)) {
      this.wrong.push(`${key.slice(0, 400)}: ${what} ${found} instead of ${known.join(" or ")}`.slice(0, 1000));
    }
  }

  expect(what, found, expected) {
    const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
    if (left !== right) this.wrong.push(`${this.step.getStore()}: ${what}: ${left} instead of ${right}`);
  }

  async tried(step, work) {
    try {
      await this.step.run(step, work);
      return true;
    } catch (error) {
      this.errors.push(`${step}: ${String(error?.message ?? error).slice(0, 800)}`);
      return false;
    }
  }

  learned() {
    this.learning = false;
    if (!this.#path) return;
    const beside = `${this.#path}.${process.pid}`;
    writeFileSync(beside, JSON.stringify(this.#known, null, 1));
    renameSync(beside, this.#path);
  }
}

export async function run(start, clientOf, path) {
  const watch = new Watch(path, clientOf.concurrent);
  // the step of the client that sent a request is that of the statements for it
  const unleash = await start((app) => {
    app.use((request, _, next) => watch.step.run(request.headers["x-step"] ?? "", next));
  });
  const client = new clientOf(watch, unleash);
  let closed = false;
  process.stdin.resume().on("end", () => { closed = true; });

  // an error of the first steps is one of the set-up, and ends the program
  await client.prepare();
  client.knex.on("query-response", (...given) => watch.statement(...given));
  const told = { writes: 0, errors: 0, wrong_counts: 0 };
  const tell = () => {
    console.log(JSON.stringify({
      compared: watch.warm && !watch.learning,
      writes: watch.writes - told.writes,
      errors: watch.errors.slice(told.errors).slice(0, TOLD),
      wrong_counts: watch.wrong.slice(told.wrong_counts).slice(0, TOLD),
    }));
    Object.assign(told, { writes: watch.writes, errors: watch.errors.length, wrong_counts: watch.wrong.length });
  };
  const every = setInterval(tell, 1000);
  let rounds = 0;
  while (!closed) {
    for (const [name, step] of client.steps()) {
      if (await watch.tried(name, step)) continue;
      // the steps after it want what it made
      await watch.tried("repair", () => client.repair());
      break;
    }
    rounds += 1;
    watch.warm = WARM_UP <= rounds;
    if (watch.learning && WARM_UP + LEARNING <= rounds) watch.learned();
  }
  clearInterval(every);
  tell();
  console.log(JSON.stringify({
    done: true,
    rounds,
    compared: watch.warm && !watch.learning,
    writes: watch.writes,
    errors: watch.errors.length,
    wrong_counts: watch.wrong.length,
  }));
  return watch.errors.length || watch.wrong.length ? 1 : 0;
}
