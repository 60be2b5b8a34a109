// Makes a client of a document with openapi-typescript, type-checks shop.ts over it, and runs it.
// Arguments: the folder of the packages, a folder to work in, the address, a key. Standard input: the document.
import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [, , packages, work, address, key] = process.argv;
const here = dirname(fileURLToPath(import.meta.url));
const program = (name) => join(packages, "node_modules", name);
const run = (...args) => execFileSync("node", args, { cwd: work, stdio: ["ignore", 2, 2] });

writeFileSync(join(work, "document.json"), readFileSync(0));
writeFileSync(join(work, "package.json"), JSON.stringify({ type: "module" }));
symlinkSync(program(""), join(work, "node_modules"));
copyFileSync(join(here, "shop.ts"), join(work, "shop.ts"));
run(program("openapi-typescript/bin/cli.js"), "document.json", "-o", "document.d.ts");
run(program("typescript/bin/tsc"), "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "shop.ts");
process.stdout.write(execFileSync("node", ["shop.js", address, key], { cwd: work, stdio: ["ignore", "pipe", 2] }));
