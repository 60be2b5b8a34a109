#!/usr/bin/env bash
# Puts the applications of tests/apps into the cache when they are not there yet, pinned by version and digest, and prints the
# folder: node_modules for Node.js, python for PYTHONPATH.
set -euo pipefail
cd "$(dirname "$0")/../apps"

if ! command -v npm >/dev/null || ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
  echo "there is no Node.js on which Unleash could run: install Node.js 20 or newer with npm (Debian 13: apt-get install nodejs npm)" >&2
  exit 2
fi
if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "there is no python3 on which Wagtail could run: install Python 3.10 or newer (Debian: apt-get install python3 python3-pip)" >&2
  exit 2
fi
python=$(python3 -c 'import platform, sys; print(sys.implementation.cache_tag, platform.system(), platform.machine())')

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
inputs=$({ cat package.json package-lock.json requirements.txt ../setup/apps.sh; echo "$python"; } |
  node -e '
    const digest = require("crypto").createHash("sha256");
    process.stdout.write(digest.update(require("fs").readFileSync(0)).digest("hex").slice(0, 16));
  ')
folder=$cache/apps-$inputs
if [ -d "$folder" ]; then
  echo "$folder"
  exit 0
fi

if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "python3 has no pip, which installs Wagtail: install it (Debian: apt-get install python3-pip)" >&2
  exit 2
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/apps.XXXXXX")
npm=
trap '[ -z "$npm" ] || { kill "$npm" 2>/dev/null; wait "$npm"; } || true; rm -rf "$work"' EXIT

echo "downloading Wagtail, Unleash and what they need into $folder (a minute or two)" >&2
cp package.json package-lock.json "$work"
(cd "$work" && npm ci --silent --ignore-scripts --no-audit --no-fund) >&2 &
npm=$!
# --target installs beside the system's packages and never among them.
PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --only-binary :all: \
  --target "$work/python" --requirement requirements.txt >&2
wait "$npm"

# A rename is all or nothing; when another run was first, its folder is as good as ours.
chmod 755 "$work"
node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$work" "$folder" 2>/dev/null || [ -d "$folder" ]
echo "$folder"
