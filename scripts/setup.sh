#!/usr/bin/env bash
# Create .venv with the locked dependencies, hashes checked, and this project in editable form.
# Install Java for Spark if it is missing. Skip what is already done for this lock file, this
# pyproject.toml and this folder.
#
# PYTHON=/path/to/python chooses the interpreter; otherwise the first one that is new enough is
# used. JAVA_HOME=/path/to/java is the first place to look for Java.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/muntin-setup

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
digest() { sha256sum | cut -d ' ' -f 1; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
        [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is not a Python of version 3.11 or later"
    done
    say "no Python of version 3.11 or later found"
    fail "install one, or name it: PYTHON=/path/to/python make setup"
}

# Debian and Ubuntu have what `python -m venv` needs in a separate package.
install_venv_module() {
    say "$1 cannot create virtual environments (no ensurepip)"
    scripts/apt.sh "$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
}

# The stamp is written last, one line for each thing .venv depends on. The folder is one of them:
# scripts and the editable install contain its path, and a copied tree would otherwise run the code
# of the original.
folder="folder $(pwd -P | digest)"
lock="lock $(digest <requirements.lock)"
project="project $(digest <pyproject.toml)"
done_before() { grep -qxF "$1" "$stamp" 2>/dev/null; }

scripts/java.sh ensure >/dev/null

if ! done_before "$folder" || ! "$venv/bin/python" -c '' 2>/dev/null; then
    python=$(find_python)
    "$python" -c 'import ensurepip, venv' 2>/dev/null || install_venv_module "$python"
    say "creating $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi
if done_before "$lock" && done_before "$project"; then exit 0; fi

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input -qq "$@"; }

locked_pyspark() { awk '/^[^ #]/ { chosen = /^pyspark==/ } chosen' requirements.lock; }
locked_others() { awk '/^[^ #]/ { chosen = !/^pyspark==/ } chosen' requirements.lock; }

# Wheels only: building a source distribution would download build tools with unchecked hashes.
install_others() {
    locked_others >"$venv/lock"
    pip install --require-hashes --only-binary :all: -r "$venv/lock"
}

# PySpark is published as a source distribution only. Its build tool is the setuptools just
# installed, so this downloads nothing unchecked either. The build takes place inside .venv because
# it needs more room than a temporary folder in memory may have.
install_pyspark() {
    local build="$PWD/$venv/build"
    rm -rf "$build"
    mkdir "$build"
    locked_pyspark >"$build/lock"
    TMPDIR=$build pip install --require-hashes --no-deps --no-binary pyspark \
        --no-build-isolation --use-pep517 -r "$build/lock"
    rm -rf "$build"
}

if ! done_before "$lock"; then
    say "installing the locked dependencies (the first time this downloads about 200 MB)"
    install_others
    say "installing PySpark (the first time this downloads another 456 MB)"
    install_pyspark
fi

say "installing muntin itself, editable"
pip install --no-deps --no-build-isolation --no-index -e .

printf '%s\n' "$folder" "$lock" "$project" >"$stamp"
say "done"
