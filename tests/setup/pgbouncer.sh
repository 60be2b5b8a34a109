#!/usr/bin/env bash
# Prints the command line of a PgBouncer: the installed one, or Debian's, unpacked into the cache without installing it.
set -euo pipefail

for installed in pgbouncer /usr/sbin/pgbouncer /usr/local/sbin/pgbouncer; do
  if found=$(command -v "$installed"); then
    echo "$found"
    exit 0
  fi
done

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
folder=$cache/pgbouncer
if [ ! -x "$folder/pgbouncer" ]; then
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "there is no pgbouncer: install it (Debian: apt-get install pgbouncer; macOS: brew install pgbouncer)" >&2
    exit 2
  fi
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/pgbouncer.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "downloading PgBouncer (Debian's package) into $folder" >&2
  # Of its libraries those that few machines have; their packages are called otherwise in each release.
  libraries=$(apt-cache depends pgbouncer | awk '/Depends: (libevent|libc-ares)/ { print $2 }')
  # shellcheck disable=SC2086 # they are words
  (cd "$work" && apt-get download pgbouncer $libraries >/dev/null 2>"$work/log") || {
    cat "$work/log" >&2
    echo "pgbouncer cannot be downloaded: run apt-get update, or install it (apt-get install pgbouncer)" >&2
    exit 2
  }
  mkdir "$work/files" "$work/whole"
  for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$work/files"; done
  mv "$work/files/usr/sbin/pgbouncer" "$work/whole/pgbouncer"
  mv "$work"/files/usr/lib/*/lib*.so* "$work/whole/"
  chmod -R go+rX "$work/whole"
  LD_LIBRARY_PATH=$work/whole "$work/whole/pgbouncer" --version >/dev/null || {
    echo "Debian's pgbouncer does not run here: install it (apt-get install pgbouncer)" >&2
    exit 2
  }
  # A rename is all or nothing; when another run was first, its folder is as good as ours.
  [ -x "$folder/pgbouncer" ] || mv "$work/whole" "$folder" 2>/dev/null || [ -x "$folder/pgbouncer" ]
fi
echo "$folder/pgbouncer"
