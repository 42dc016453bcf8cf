#!/usr/bin/env bash
# Write requirements.lock from pyproject.toml: every version pinned, every file hashed, for all
# supported Pythons and platforms at once. Existing pins are kept unless pyproject.toml excludes
# them; arguments go to uv, e.g. `make lock LOCK_FLAGS=--upgrade` or `make lock
# LOCK_FLAGS='--upgrade-package numba'`.
set -eu
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools/venv"
"$tools/venv/bin/python" -m pip --disable-pip-version-check -qq install uv

touch requirements.lock
cp requirements.lock "$tools/resolved"
"$tools/venv/bin/uv" pip compile pyproject.toml --extra dev --universal \
    --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
    --quiet --output-file "$tools/resolved" "$@" >/dev/null

{
    echo "# All dependencies to run, test and build muntin, pinned and hashed; written by make lock."
    sed -e 's/^\( *# *\)via .*pyproject\.toml)\{0,1\}/\1via muntin (pyproject.toml)/' \
        "$tools/resolved"
} >"$tools/lock"

# The lock contains names, versions and hashes. The machine that installs decides where to download
# from.
if grep -nE '://|--(index|extra-index|find-links|trusted)' "$tools/lock"; then
    echo "lock: the lines above name a place to download from; nothing written" >&2
    exit 1
fi
cat "$tools/lock" >requirements.lock
echo "lock: $(grep -c '==' requirements.lock) packages in requirements.lock" >&2
