#!/usr/bin/env bash
# Prepare what `make test-connectors` needs besides .venv, in the folder .connectors: Hadoop's
# connectors for Spark, copied by Maven from tests/connectors/pom.xml, and an environment with an
# S3 server, from tests/connectors/requirements.lock. Install Maven if it is missing. Skip what is
# already done.
set -eu
cd "$(dirname "$0")/.."

folder=.connectors
inputs=tests/connectors

say() { printf 'connectors: %s\n' "$*" >&2; }
digest() { sha256sum | cut -d ' ' -f 1; }
done_before() { [ "$(cat "$folder/$1" 2>/dev/null)" = "$2" ]; }

jars="jars $(digest <$inputs/pom.xml)"
server="server $(pwd -P | digest) $(digest <$inputs/requirements.lock)"
mkdir -p "$folder"

if ! done_before jars-made "$jars"; then
    command -v mvn >/dev/null || scripts/apt.sh maven
    say "copying Hadoop's connectors (the first time this downloads about 660 MB)"
    rm -rf "$folder/jars"
    JAVA_HOME=$(scripts/java.sh find) mvn -q -B -f $inputs/pom.xml \
        dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$PWD/$folder/jars"
    echo "$jars" >"$folder/jars-made"
fi

if ! done_before server-made "$server"; then
    say "installing the S3 server"
    .venv/bin/python -m venv --clear "$folder/venv"
    "$folder/venv/bin/python" -m pip --disable-pip-version-check --no-input -qq install \
        --require-hashes --only-binary :all: -r $inputs/requirements.lock
    echo "$server" >"$folder/server-made"
fi
