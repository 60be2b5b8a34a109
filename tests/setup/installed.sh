#!/usr/bin/env bash
# Whether this machine has a program that set-up need not download: installed.sh postgres, or pgbouncer, whose path is
# printed. ROWGATE_PINNED means that nothing that is installed counts.
set -euo pipefail
[ -z "${ROWGATE_PINNED:-}" ] || exit 1

case $1 in
  postgres)
    # The folders of dataplane/standalone/src/postgres/binaries.rs.
    on_path=$(type -P postgres || true)
    for program in /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres $on_path \
      /opt/homebrew/opt/postgresql@*/bin/postgres /usr/local/opt/postgresql@*/bin/postgres; do
      [ -x "$program" ] || continue
      version=$("$program" --version 2>/dev/null | sed -n 's/^postgres (PostgreSQL) \([0-9]*\).*/\1/p')
      program=$(realpath "$program")
      if [ "${version:-0}" -ge 16 ] && [ -x "${program%/*}/initdb" ]; then exit 0; fi
    done
    exit 1 ;;
  pgbouncer)
    for program in pgbouncer /usr/sbin/pgbouncer /usr/local/sbin/pgbouncer; do
      if type -P "$program"; then exit 0; fi
    done
    exit 1 ;;
esac
