#!/usr/bin/env bash
# Prints the command line of a PgBouncer: the installed one, or this Debian release's, unpacked into the cache without
# installing it. No version is written here, because a release replaces its package at once when it mends it and keeps no
# older one: the folder's name says which release and which version it was, and that one is used from then on.
set -euo pipefail
cd "$(dirname "$0")"

# The oldest that README.md promises.
oldest=1.18

if ./installed.sh pgbouncer; then exit 0; fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "there is no apt-get with dpkg-deb, with which PgBouncer is downloaded: install pgbouncer (macOS: brew install pgbouncer)" >&2
  exit 2
fi
release=$(. /etc/os-release && echo "${ID:-debian}${VERSION_ID:-}-$(dpkg --print-architecture)")
cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
found=$(find "$cache" -maxdepth 2 -path "$cache/pgbouncer-$release-*/pgbouncer" 2>/dev/null | sort -V | tail -n 1 || true)
if [ -n "$found" ]; then
  echo "$found"
  exit 0
fi

candidate() {
  apt-cache policy pgbouncer | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

mkdir -p "$cache"
work=$(mktemp -d "$cache/pgbouncer.XXXXXX")
trap 'rm -rf "$work"' EXIT
version=$(candidate)
if [ -z "$version" ] && [ "$(id -u)" = 0 ]; then
  echo "apt has no list of packages yet: running apt-get update" >&2
  apt-get update >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 2; }
  version=$(candidate)
fi
if [ -z "$version" ]; then
  echo "apt knows no package pgbouncer: run apt-get update as root, or install pgbouncer" >&2
  exit 2
fi
folder=$cache/pgbouncer-$release-$version
echo "downloading PgBouncer $version (the package of $release) into $folder" >&2
# Of its libraries those that few machines have; their packages are called otherwise in each release.
libraries=$(apt-cache depends pgbouncer | awk '/Depends: (libevent|libc-ares)/ { print $2 }')
# shellcheck disable=SC2086 # they are words
(cd "$work" && apt-get download "pgbouncer=$version" $libraries >/dev/null 2>"$work/log") || {
  cat "$work/log" >&2
  echo "PgBouncer cannot be downloaded: run apt-get update as root, or install pgbouncer" >&2
  exit 2
}
mkdir "$work/files" "$work/whole"
for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$work/files"; done
mv "$work/files/usr/sbin/pgbouncer" "$work/whole/pgbouncer"
mv "$work"/files/usr/lib/*/lib*.so* "$work/whole/"
chmod -R go+rX "$work/whole"
says=$(LD_LIBRARY_PATH=$work/whole "$work/whole/pgbouncer" --version | sed -n 's/^PgBouncer //p') || says=
if [ -z "$says" ]; then
  echo "the pgbouncer of $release does not run here: install it (apt-get install pgbouncer)" >&2
  exit 2
fi
if [ "${version#"$says"}" = "$version" ] || [ "$(printf '%s\n' "$oldest" "$says" | sort -V | head -n 1)" != "$oldest" ]; then
  echo "the package pgbouncer $version holds PgBouncer $says; PgBouncer $oldest or newer is needed" >&2
  exit 2
fi
# A rename is all or nothing; when another run was first, its folder is as good as ours.
[ -x "$folder/pgbouncer" ] || mv "$work/whole" "$folder" 2>/dev/null || [ -x "$folder/pgbouncer" ]
echo "$folder/pgbouncer"
