// COPY of features out and in, as a dump and a restore of the application's role would.

import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";

export const TABLE = "features";
const N_ROWS = 1000;
const COLUMNS = "name, type, project, description, created_at, stale, variants, impression_data";

const lines = (text) => text.toString().split("\n").length - 1;

export async function copied(db, { Client }, { from, to }) {
  const client = new Client(db);
  await client.connect();
  const table = client.escapeIdentifier(db.schema) + "." + TABLE;
  const prefix = `copied-${process.pid}-${Math.floor(Date.now() / 1000)}-`;
  const mine = `name like '${prefix}%'`;

  const one = async (sql) => Number((await client.query(sql)).rows[0].n);
  const out = async (sql) => buffer(client.query(to(sql)));
  const into = async (text) => {
    const stream = client.query(from(`copy ${table} (${COLUMNS}) from stdin`));
    await pipeline(Readable.from([text]), stream);
    return stream.rowCount;
  };
  const deleted = async () => (await client.query(`delete from ${table} where ${mine}`)).rowCount;

  // pg_dump asks for an error instead of fewer rows
  await client.query("begin isolation level repeatable read; set local row_security = off");
  const rows = await one(`select count(*) as n from ${table}`);
  const whole = lines(await out(`copy ${table} (${COLUMNS}) to stdout`));
  await client.query("commit");

  const first = await into(Array.from({ length: N_ROWS }, (_, i) =>
    `${prefix}${i}\trelease\tdefault\tcopied\t2026-01-01 00:00:00+00\tf\t[]\tf\n`).join(""));
  await client.query("begin");
  const text = await out(`copy (select ${COLUMNS} from ${table} where ${mine}) to stdout`);
  const counts = [first, lines(text), await deleted(), await into(text)];
  counts.push(await one(`select count(*) as n from ${table} where ${mine}`));
  await client.query("commit");
  counts.push(await deleted());
  await client.end();

  const wrong = counts.every((count) => count === N_ROWS) ? [] : [`${counts} instead of ${N_ROWS} each`];
  if (whole !== rows) wrong.push(`COPY gave ${whole} of ${rows} rows`);
  return { table: TABLE, rows, out: whole, in: counts[0] + counts[3], errors: [], wrong_counts: wrong };
}
