#!/usr/bin/env bash
# Write requirements.lock from pyproject.toml, and requirements.lock in tests/connectors and
# tests/console from the files beside them: every version pinned, every file hashed, for all supported Pythons and platforms.
# Existing pins are kept unless the sources exclude them; arguments go to uv, e.g. `make lock
# LOCK_FLAGS=--upgrade` or `make lock LOCK_FLAGS='--upgrade-package numba'`.
set -eu
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools/venv"
"$tools/venv/bin/python" -m pip --disable-pip-version-check -qq install uv

# lock SOURCE LOCK ABOUT [OPTION ...]
lock() {
    local source=$1 target=$2 about=$3
    shift 3
    touch "$target"
    cp "$target" "$tools/resolved"
    "$tools/venv/bin/uv" pip compile "$source" --universal --python-version 3.11 \
        --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
        --quiet --output-file "$tools/resolved" "$@" >/dev/null
    {
        echo "# $about, pinned and hashed; written by make lock."
        sed -e 's/^\( *# *\)via .*pyproject\.toml)\{0,1\}/\1via muntin (pyproject.toml)/' \
            "$tools/resolved"
    } >"$tools/lock"
    # The lock contains names, versions and hashes. The machine that installs decides where to
    # download from.
    if grep -nE '://|--(index|extra-index|find-links|trusted)' "$tools/lock"; then
        echo "lock: the lines above name a place to download from; nothing written" >&2
        exit 1
    fi
    cat "$tools/lock" >"$target"
    echo "lock: $(grep -c '==' "$target") packages in $target" >&2
}

lock pyproject.toml requirements.lock "All dependencies to run, test and build muntin" \
    --extra dev "$@"
lock tests/connectors/requirements.in tests/connectors/requirements.lock \
    "The S3 server of make test-connectors" "$@"
lock tests/console/requirements.in tests/console/requirements.lock \
    "The browser driver of make test-console" "$@"
