#!/usr/bin/env bash
# Builds the programs of tests/cluster (an API server, kubectl, etcd and what judges their objects) into the cache when
# they are not there yet, and prints the folder that holds them all. A module there is a folder with go.mod, pinned by
# go.sum: it provides the tools that its go.mod names, or, with a main.go, one program of its own name. A file `ldflags`
# is given to the linker. What KUBEBUILDER_ASSETS holds is taken from there, unless ROWGATE_PINNED is set.
set -euo pipefail
cd "$(dirname "$0")/../cluster"

# Whatever changes here builds every module anew.
recipe='CGO_ENABLED=0 go build -trimpath -ldflags -s -w'

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
assets=${KUBEBUILDER_ASSETS:-}
[ -z "${ROWGATE_PINNED:-}" ] || assets=
mkdir -p "$cache"
work=$(mktemp -d "$cache/cluster.XXXXXX")
trap 'rm -rf "$work"' EXIT

digest() {
  if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c 1-16
}

# Which programs module $1 provides, one a line.
programs() {
  [ ! -e "$1/main.go" ] || echo "$1"
  awk '/^tool \(/ { within = 1; next } within && /^\)/ { within = 0 } within { print $1 } /^tool [^(]/ { print $2 }' "$1/go.mod" |
    sed 's,.*/,,'
}

# Module $1 into the folder $2.
build() {
  if ! command -v go >/dev/null; then
    echo "Go is not installed, with which $(programs "$1" | xargs) is built: install Go 1.26 or newer, or name a folder that holds it in KUBEBUILDER_ASSETS" >&2
    exit 2
  fi
  echo "building $(programs "$1" | xargs) into $2 (minutes, once)" >&2
  local began=$SECONDS flags='-s -w' what
  if [ -e "$1/ldflags" ]; then flags="$flags $(tr '\n' ' ' <"$1/ldflags")"; fi
  if [ -e "$1/main.go" ]; then what=.; else what=tool; fi
  mkdir -p "$work/$1"
  # A build cache of its own: it grows to gigabytes, which nothing needs once the programs stand.
  (cd "$1" && CGO_ENABLED=0 GOCACHE="$work/go-build" go build -trimpath -ldflags "$flags" -o "$work/$1/" "$what") >&2
  # A rename is all or nothing; when another run was first, its folder is as good as ours.
  mkdir -p "$(dirname "$2")"
  mv "$work/$1" "$2" 2>/dev/null || [ -d "$2" ]
  echo "built $(programs "$1" | xargs) in $((SECONDS - began)) s" >&2
}

links=$work/links
mkdir -p "$links"
for file in */go.mod; do
  module=${file%/go.mod}
  key=$({ echo "$recipe"; uname -s -m; cat "$module"/go.* "$module"/*.go "$module"/ldflags 2>/dev/null || true; } | digest)
  built=$cache/cluster/$module-$key
  for program in $(programs "$module"); do
    if [ -n "$assets" ] && [ -x "$assets/$program" ]; then
      ln -s "$assets/$program" "$links/$program"
      continue
    fi
    if [ ! -d "$built" ]; then
      build "$module" "$built"
    fi
    # A relative link: the whole cache may be moved.
    ln -s "../../cluster/$module-$key/$program" "$links/$program"
  done
done

folder=$cache/cluster-$(cd "$links" && for link in *; do readlink "$link"; done | digest)/bin
if [ ! -d "$folder" ]; then
  mkdir -p "$(dirname "$folder")"
  mv "$links" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
echo "$folder"
