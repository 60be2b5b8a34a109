#!/usr/bin/env bash
# Prints the path of a Chromium in which the console is tested: the one that ROWGATE_CHROMIUM names, or an installed one. Where
# there is none, root's set-up installs Debian's, whose version is not written here: a browser is replaced when it is
# repaired, and no older one is kept. It needs forty libraries, so that it is not unpacked into the cache.
set -euo pipefail

installed() {
  local program
  for program in ${ROWGATE_CHROMIUM:+"$ROWGATE_CHROMIUM"} chromium-headless-shell chromium google-chrome \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    if type -P "$program"; then return 0; fi
  done
  return 1
}

if installed; then exit 0; fi
[ "${1:-}" != --installed ] || exit 1

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "there is no Chromium in which the console is tested: install one (Debian: apt-get install chromium-headless-shell), or name it in ROWGATE_CHROMIUM" >&2
  exit 2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  # Without a font there is no text in pictures.
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends \
    chromium-headless-shell fonts-liberation >"$log" 2>&1
}

echo "installing Debian's chromium-headless-shell (less than a minute)" >&2
# The lists of packages may be missing, or name a version that is gone.
install || { apt-get update >"$log" 2>&1 && install; } || {
  tail -n 20 "$log" >&2
  echo "Chromium cannot be installed here: install one yourself, and name it in ROWGATE_CHROMIUM" >&2
  exit 2
}
installed
