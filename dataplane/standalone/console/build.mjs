// Bundles the console into a folder: node build.mjs FOLDER, beside node_modules. What the browser loads stands in that
// folder, all of it beside each other, so that the program serves a fixed list of files.
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const folder = process.argv[2];

const shared = {
  bundle: true,
  minify: true,
  outdir: folder,
  target: "es2022",
  define: { "process.env.NODE_ENV": '"production"' },
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
};

// GraphiQL and the API reference are loaded when their tab is opened; what both need stands in files of its own.
const pages = await build({
  ...shared,
  entryPoints: ["src/console.js", "src/graphql.js", "src/reference.js", "src/style.css"],
  format: "esm",
  splitting: true,
  assetNames: "[name]",
  chunkNames: "part-[hash]",
  loader: { ".ttf": "file" },
});

// The editors of GraphiQL check and complete text in workers, which are files of the same origin.
const workers = await build({
  ...shared,
  entryPoints: {
    "worker-editor": "monaco-editor/esm/vs/editor/editor.worker.js",
    "worker-json": "monaco-editor/esm/vs/language/json/json.worker.js",
    "worker-graphql": "monaco-graphql/esm/graphql.worker.js",
  },
  format: "iife",
});

await cp("src/index.html", join(folder, "index.html"));

// The licences of what was bundled ask to be passed on with it.
const inputs = [pages, workers].flatMap((made) => Object.keys(made.metafile.inputs));
const packages = new Set(inputs.map((path) => path.match(/^node_modules\/((@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean));
const licences = [...packages].sort().map(async (name) => {
  const of = (file) => readFile(join("node_modules", name, file), "utf8").catch(() => undefined);
  const { version, license } = JSON.parse(await of("package.json"));
  const text = (await of("LICENSE")) ?? (await of("LICENSE.md")) ?? (await of("LICENSE.txt")) ?? (await of("license")) ?? "";
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
});
await writeFile(join(folder, "licences.txt"), (await Promise.all(licences)).join(`\n${"-".repeat(72)}\n\n`));
