#!/usr/bin/env bash
# Install the first of the given Debian or Ubuntu packages that the distribution has, or print what
# the user has to do.
#
#   scripts/apt.sh PACKAGE [OTHER PACKAGE ...]
set -eu

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

command -v apt-get >/dev/null \
    || fail "there is no apt-get here; install the equivalent of Debian's $1 and run make again"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null \
        || fail "this needs root or sudo; as root, run: apt-get install $1"
    as_root=sudo
fi

$as_root apt-get update -qq >&2 \
    || say "apt-get update failed; trying with the existing package lists"
for package in "$@"; do
    if trouble=$($as_root apt-get install --simulate -qq "$package" 2>&1); then
        say "installing $package with apt-get"
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >&2 \
            || fail "could not install $package; install it manually and run make again"
        exit 0
    fi
done
fail "apt-get has none of these packages: $*; for the last one it reported: $trouble"
