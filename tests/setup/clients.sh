#!/usr/bin/env bash
# Puts the public clients of tests/clients into the cache when they are not there yet, pinned by version and digest, and
# prints the folder: node_modules for Node.js, python for PYTHONPATH, maven for -Dmaven.repo.local.
set -euo pipefail
cd "$(dirname "$0")/../clients"

if ! command -v npm >/dev/null || ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
  echo "there is no Node.js on which jose could verify our tokens: install Node.js 20 or newer with npm (Debian 13: apt-get install nodejs npm)" >&2
  exit 2
fi
if ! command -v python3 >/dev/null; then
  echo "there is no python3 on which PyJWT could verify our tokens: install Python 3.10 or newer (Debian: apt-get install python3 python3-pip)" >&2
  exit 2
fi
if ! command -v mvn >/dev/null || ! command -v java >/dev/null; then
  echo "there is no Maven with which Flyway could change tables: install Java 17 or newer and Maven (Debian: apt-get install maven)" >&2
  exit 2
fi
python=$(python3 -c 'import platform, sys; print(sys.implementation.cache_tag, platform.system(), platform.machine())')

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
inputs=$({ cat package.json package-lock.json requirements.txt migrations/flyway/pom.xml migrations/flyway/jars.sha256 ../setup/clients.sh; echo "$python"; } |
  node -e '
    const digest = require("crypto").createHash("sha256");
    process.stdout.write(digest.update(require("fs").readFileSync(0)).digest("hex").slice(0, 16));
  ')
folder=$cache/clients-$inputs
if [ -d "$folder" ]; then
  echo "$folder"
  exit 0
fi

if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "python3 has no pip, which installs PyJWT: install it (Debian: apt-get install python3-pip)" >&2
  exit 2
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/clients.XXXXXX")
trap 'rm -rf "$work"' EXIT

echo "downloading jose, PyJWT, openapi-typescript, schemathesis, graphql-ws, pyarrow, DuckDB, Polars, pandas, moto, Alembic, node-pg-migrate, Flyway and what they need into $folder (a minute)" >&2
cp package.json package-lock.json "$work"
(cd "$work" && npm ci --silent --ignore-scripts --no-audit --no-fund) >&2
# --target installs beside the system's packages and never among them.
PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --only-binary :all: \
  --target "$work/python" --requirement requirements.txt >&2
# A goal that does nothing makes Maven fetch the plugin with all that it needs. Maven itself verifies no digest of ours.
mvn --quiet --batch-mode --no-transfer-progress -Dstyle.color=never --file migrations/flyway/pom.xml -Dmaven.repo.local="$work/maven" \
  flyway:migrate -Dflyway.skip=true >&2
node -e '
  const fs = require("fs"), path = require("path"), [folder, list] = process.argv.slice(1);
  const pinned = new Map(fs.readFileSync(list, "utf8").trim().split("\n").map((line) => line.split("  ").reverse()));
  for (const name of fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".jar"))) {
    const digest = require("crypto").createHash("sha256").update(fs.readFileSync(path.join(folder, name))).digest("hex");
    if (pinned.get(name) !== digest) {
      console.error(`${name} is not the one we pinned: ${digest} instead of ${pinned.get(name)}`);
      process.exit(1);
    }
  }
' "$work/maven" migrations/flyway/jars.sha256

# A rename is all or nothing; when another run was first, its folder is as good as ours.
chmod 755 "$work"
node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$work" "$folder" 2>/dev/null || [ -d "$folder" ]
echo "$folder"
