#!/usr/bin/env bash
# Installs the first of some Debian or Ubuntu packages that the distribution has, or says what a person must do.
#
#   scripts/apt.sh PACKAGE [OTHER PACKAGE ...]
set -eu

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

command -v apt-get >/dev/null || fail "there is no apt-get here; install what is called $1 on Debian by other means and run make again"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "neither root nor sudo here; as root, run: apt-get install $1"
    as_root=sudo
fi

$as_root apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists at hand"
for package in "$@"; do
    if $as_root apt-get install --simulate -qq "$package" >/dev/null 2>&1; then
        say "installing $package with apt-get"
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >&2 \
            || fail "could not install $package; install it by hand and run make again"
        exit 0
    fi
done
fail "this distribution has no package called $*"
