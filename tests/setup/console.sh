#!/usr/bin/env bash
# Bundles the console of dataplane/standalone/console into the cache when it is not there yet, from npm packages pinned by
# version and digest, and prints the folder: what `--console` takes.
set -euo pipefail
cd "$(dirname "$0")/../../dataplane/standalone/console"

if ! command -v npm >/dev/null || ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
  echo "there is no Node.js with which the console is bundled: install Node.js 20 or newer with npm (Debian 13: apt-get install nodejs npm)" >&2
  exit 2
fi

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
inputs=$(cat package.json package-lock.json build.mjs src/* ../../../tests/setup/console.sh | node -e '
  const digest = require("crypto").createHash("sha256");
  process.stdout.write(digest.update(require("fs").readFileSync(0)).digest("hex").slice(0, 16));
')
folder=$cache/console-$inputs
if [ -d "$folder" ]; then
  echo "$folder"
  exit 0
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/console.XXXXXX")
trap 'rm -rf "$work"' EXIT

echo "bundling the console into $folder (half a minute)" >&2
cp -R package.json package-lock.json build.mjs src "$work"
# No script of a package runs: esbuild's program comes in a package of its own.
(cd "$work" && npm ci --silent --ignore-scripts --no-audit --no-fund && node build.mjs "$work/console") >&2

# A rename is all or nothing; when another run was first, its folder is as good as ours.
chmod 755 "$work/console"
node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$work/console" "$folder" 2>/dev/null || [ -d "$folder" ]
echo "$folder"
