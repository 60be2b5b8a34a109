import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

// The command runs in the folder of the packages.
const { from } = createRequire(`${process.cwd()}/`)("pg-copy-streams");

export const up = async (pgm) => {
  const rows = Array.from({ length: 100 }, (_, n) => `${n + 1}\ts${n + 1}\n`);
  await pipeline(Readable.from(rows), await pgm.db.query(from("copy trade.suppliers from stdin")));
};
