#!/usr/bin/env bash
# Prepare what `make test-connectors` needs besides .venv, in the folder .connectors: connectors for
# Spark and a Kafka broker, copied by Maven from tests/connectors/pom.xml and broker/pom.xml, and an
# environment with an S3 server, from tests/connectors/requirements.lock. Install Maven if it is
# missing. Skip what is already done.
set -eu
cd "$(dirname "$0")/.."

folder=.connectors
inputs=tests/connectors

say() { printf 'connectors: %s\n' "$*" >&2; }
digest() { sha256sum | cut -d ' ' -f 1; }
done_before() { [ "$(cat "$folder/$1" 2>/dev/null)" = "$2" ]; }

server="server $(pwd -P | digest) $(digest <$inputs/requirements.lock)"
mkdir -p "$folder"

# copy NAME POM WHAT: copy the jars of a pom into the folder NAME.
copy() {
    local made
    made="$1 $(digest <"$2")"
    if done_before "$1-made" "$made"; then return 0; fi
    command -v mvn >/dev/null || scripts/apt.sh maven
    say "copying $3"
    rm -rf "${folder:?}/$1"
    JAVA_HOME=$(scripts/java.sh find) mvn -q -B -f "$2" \
        dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$PWD/$folder/$1"
    echo "$made" >"$folder/$1-made"
}

copy jars $inputs/pom.xml "the connectors (the first time this downloads about 660 MB)"
copy broker $inputs/broker/pom.xml "a Kafka broker (the first time this downloads about 45 MB)"

if ! done_before server-made "$server"; then
    say "installing the S3 server"
    .venv/bin/python -m venv --clear "$folder/venv"
    "$folder/venv/bin/python" -m pip --disable-pip-version-check --no-input -qq install \
        --require-hashes --only-binary :all: -r $inputs/requirements.lock
    echo "$server" >"$folder/server-made"
fi
