// Unleash beside Rowgate: migrates its database, writes to it all the time, copies a table out and in.
//
// main.mjs migrate: runs the migrations of the package with its own migrator.
// main.mjs write [FILE]: changes and reads back, until standard input is closed. FILE keeps the row counts of each statement and
// the fields of each answer: it is made when it is not there, and compared with when it is.
// main.mjs copy: COPY of a table by the role of the application.
//
// ROWGATE_APPS is the folder that holds node_modules; the database is that of PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD
// and APP_SCHEMA.

import { createRequire } from "node:module";
import { join } from "node:path";

import { Client } from "./client.mjs";
import { copied, TABLE } from "./copying.mjs";
import { run } from "./watch.mjs";

// pg warns of what the migrations of Unleash do
process.noDeprecation = true;
process.env.NODE_ENV ??= "production";
process.env.CREATE_USER_RATE_LIMIT_PER_MINUTE = "1000000";

const load = createRequire(join(process.env.ROWGATE_APPS ?? ".", "node_modules/x.js"));

const { PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD, APP_SCHEMA } = process.env;
const db = {
  driver: "postgres",
  host: PGHOST,
  port: Number(PGPORT),
  database: PGDATABASE,
  user: PGUSER,
  password: PGPASSWORD,
  schema: APP_SCHEMA ?? "public",
  ssl: false,
};

async function migrate() {
  const started = performance.now();
  await load("unleash-server/dist/migrator.js").migrateDb({ db });
  const client = new (load("pg").Client)(db);
  await client.connect();
  const { rows } = await client.query("select count(*)::int as n from pg_tables where schemaname = $1", [db.schema]);
  await client.end();
  console.log(JSON.stringify({ tables: rows[0].n, seconds: Math.round((performance.now() - started) / 100) / 10 }));
  return 0;
}

async function write(file) {
  const unleash = (hook) => load("unleash-server").start({
    db: { ...db, disableMigration: true },
    preHook: hook,
    authentication: { type: "none" },
    disableScheduler: true,
    server: { port: 0, host: "127.0.0.1", secret: "of-a-test", gracefulShutdownEnable: false },
    versionCheck: { enable: false },
    telemetry: false,
    logLevel: "fatal",
  });
  return run(unleash, Client, file);
}

async function copy() {
  let told;
  try {
    told = await copied(db, load("pg"), load("pg-copy-streams"));
  } catch (error) {
    told = { table: TABLE, errors: [String(error.message)], wrong_counts: [] };
  }
  console.log(JSON.stringify(told));
  return told.errors.length || told.wrong_counts.length ? 1 : 0;
}

const [command, ...given] = process.argv.slice(2);
const commands = { migrate, write, copy };
if (!commands[command]) {
  console.error("give migrate, write or copy");
  process.exit(2);
}
process.exit(await commands[command](...given));
