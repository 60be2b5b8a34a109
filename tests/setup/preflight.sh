#!/usr/bin/env bash
# Tells everything that this machine lacks for these targets of make, before any of them builds: preflight.sh test cluster
set -euo pipefail
cd "$(dirname "$0")"

cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}
lacking=()

lacks() { lacking+=("$1"); }
has() { command -v "$1" >/dev/null; }
cached() { compgen -G "$cache/$1" >/dev/null; }

program() {
  has "$1" || lacks "$1: $2"
}

rust() {
  local pinned
  pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' ../../rust-toolchain.toml)
  if ! has cargo; then
    lacks "cargo: install rustup, which takes Rust $pinned by itself"
  elif ! has rustup && ! cargo --version | grep -qF "cargo $pinned"; then
    lacks "Rust $pinned: this is $(cargo --version), and no rustup to choose another; install rustup"
  fi
  program cc "install a C compiler, gcc or clang (Debian: apt-get install build-essential)"
}

# Node.js with npm, of this version or a newer one; told once, with the newest that anything needs.
nodejs=0
needs_node() {
  [ "$1" -le "$nodejs" ] || nodejs=$1
}

node_and_npm() {
  local version=0
  ! has node || version=$(node -p 'parseInt(process.versions.node)' 2>/dev/null) || version=0
  if ! has npm || [ "$version" -lt "$nodejs" ]; then
    lacks "npm: install Node.js $nodejs or newer with npm (Debian: apt-get install nodejs npm)"
  fi
}

postgres() {
  cached "postgres-${1:-18}.*/bin/postgres" && return
  [ $# -gt 0 ] || ! ./installed.sh postgres || return 0
  needs_node 18
  program tar "PostgreSQL is unpacked with it"
}

# Python with pip, by which this folder of the cache is filled.
python_and_pip() {
  if ! has python3 || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    lacks "python3: install Python 3.10 or newer with pip, in which public clients and applications run (Debian: apt-get install python3 python3-pip)"
  elif ! cached "$1" && ! python3 -m pip --version >/dev/null 2>&1; then
    lacks "pip: python3 has none to install public clients and applications with (Debian: apt-get install python3-pip)"
  fi
}

clients() {
  needs_node 20
  python_and_pip 'clients-*/python'
  if ! has mvn || ! has java; then
    lacks "mvn: install Java 17 or newer and Maven, with which Flyway runs (Debian: apt-get install maven)"
  fi
}

apps() {
  needs_node 20
  python_and_pip 'apps-*/python'
}

console() {
  cached 'console-*/index.html' || needs_node 20
}

chromium() {
  ./chromium.sh --installed >/dev/null && return
  # root's set-up installs it.
  [ "$(id -u)" = 0 ] && has apt-get && return
  lacks "Chromium, in which the console is tested: install it (Debian: apt-get install chromium-headless-shell), or name it in ROWGATE_CHROMIUM"
}

pgbouncer() {
  cached 'pgbouncer-*/pgbouncer' && return
  ./installed.sh pgbouncer >/dev/null && return
  if ! has apt-get || ! has dpkg-deb; then
    lacks "apt-get and dpkg-deb, with which PgBouncer is downloaded: without them install pgbouncer (macOS: brew install pgbouncer)"
  # root's set-up runs it by itself.
  # grep reads to the end: one that leaves early ends apt-cache, and the pipe with it.
  elif [ "$(id -u)" != 0 ] && ! apt-cache policy pgbouncer 2>/dev/null | grep 'Candidate: [^(]' >/dev/null; then
    lacks "apt's lists of packages, in which PgBouncer stands: run apt-get update as root, or install pgbouncer"
  fi
}

kubernetes() {
  local file built=yes version
  for file in ../cluster/*/go.mod; do
    file=${file%/go.mod}
    cached "cluster/${file##*/}-*" || built=
  done
  [ -z "$built" ] || return 0
  if ! has go; then
    lacks "go: install Go 1.26 or newer, with which an API server is built (https://go.dev/dl)"
  # An older Go takes the version that go.mod names by itself, where it is let.
  elif ! version=$(cd ../cluster/kubernetes && go env GOVERSION 2>&1); then
    lacks "Go 1.26 or newer, with which an API server is built: ${version##*$'\n'} (https://go.dev/dl)"
  fi
}

# As make decides it, too.
asked=${POSTGRES:-${ROWGATE_PINNED:+18}}
for target in "$@"; do
  case $target in
    run | cluster | test | soak | bench)
      rust
      program curl "requests are tried with it (Debian: apt-get install curl)"
      postgres ${asked:+"$asked"} ;;
    lint | fmt | deny | crds | fuzz) rust ;;
    postgres | clients | apps | pgbouncer | kubernetes | console | chromium) $target ;;
  esac
  case $target in
    test)
      program git "a test asks it which files are ours (Debian: apt-get install git)"
      # A short part of the tests runs on the oldest version.
      [ -n "${POSTGRES:-}" ] || postgres 16
      clients
      apps
      console
      chromium
      pgbouncer
      kubernetes ;;
    cluster) kubernetes ;;
    bench) program pgbench "reads are compared with it (Debian: apt-get install postgresql-contrib)" ;;
    fuzz) program c++ "libFuzzer needs a C++ compiler (Debian: apt-get install build-essential)" ;;
  esac
done

[ "$nodejs" = 0 ] || node_and_npm
[ ${#lacking[@]} -gt 0 ] || exit 0
{
  echo "this machine lacks what make $* needs:"
  printf '%s\n' "${lacking[@]}" | awk '!seen[$0]++ { print "  " $0 }'
  echo "README.md says what a machine must have"
} >&2
exit 2
