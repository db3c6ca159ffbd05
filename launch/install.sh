#!/usr/bin/env bash
# Installs the Debian packages that Octavo needs and that are missing; does nothing when all are there.
#
#   launch/install.sh [build] [test] [development] [fuzz]      groups of launch/packages.txt; default: build
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: $*" >&2; exit 2; }

groups=("$@")
[ "${#groups[@]}" -gt 0 ] || groups=(build)
wanted=()
for group in "${groups[@]}"; do
  mapfile -t -O "${#wanted[@]}" wanted < <(awk -v group="$group" '$1 == group {print $2}' launch/packages.txt)
  grep -q "^$group " launch/packages.txt ||
    fail "launch/install.sh: no group '$group' in launch/packages.txt; there are build, test, development and fuzz"
done

command -v dpkg-query >/dev/null ||
  fail "this system has no dpkg-query, so it isn't Debian. Install by other means what launch/packages.txt lists."
missing=()
for package in "${wanted[@]}"; do
  # One line for each architecture.
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "these packages are missing: ${missing[*]}
Installing them needs root, and there is no sudo here. As root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
echo "[install] installing with apt-get${as_root[0]:+ (through sudo)}: ${missing[*]}"

# sudo drops the environment's proxies.
proxies=()
for name in http_proxy https_proxy ftp_proxy no_proxy; do
  [ -z "${!name-}" ] || proxies+=("$name=${!name}")
done
apt() {
  "${as_root[@]}" env "${proxies[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
    -o Acquire::Retries=3 "$@" </dev/null
}
apt update || echo "[install] apt-get update failed; trying with the package lists that are there" >&2
apt install --no-install-recommends "${missing[@]}" ||
  fail "apt-get could not install: ${missing[*]}
Its own message stands above. Without a network, install these packages by other means and run this again."
