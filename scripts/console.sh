#!/usr/bin/env bash
# Prepare what `make test-console` needs besides .venv, in the folder .console: Playwright for
# Python, from tests/console/requirements.lock, and axe-core from npm. Install Chromium and npm from
# the distribution if they are missing. Skip what is already done.
set -eu
cd "$(dirname "$0")/.."

folder=.console
inputs=tests/console
axe=4.10.3
axe_digest=0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292

say() { printf 'console: %s\n' "$*" >&2; }
digest() { sha256sum | cut -d ' ' -f 1; }
done_before() { [ "$(cat "$folder/$1" 2>/dev/null)" = "$2" ]; }

mkdir -p "$folder"
[ -x /usr/bin/chromium ] || scripts/apt.sh chromium

driver="driver $(digest <$inputs/requirements.lock)"
if ! done_before driver-made "$driver"; then
    say "installing Playwright (the first time this downloads about 50 MB)"
    rm -rf "$folder/python"
    .venv/bin/python -m pip --disable-pip-version-check --no-input -qq install \
        --target "$folder/python" --require-hashes --only-binary :all: \
        -r $inputs/requirements.lock
    echo "$driver" >"$folder/driver-made"
fi

if ! done_before axe-made "axe $axe_digest"; then
    command -v npm >/dev/null || scripts/apt.sh npm
    say "downloading axe-core $axe"
    (cd "$folder" && npm pack --silent "axe-core@$axe" >/dev/null)
    echo "$axe_digest  $folder/axe-core-$axe.tgz" | sha256sum --check --quiet
    tar -xzf "$folder/axe-core-$axe.tgz" -C "$folder" --strip-components 1 package/axe.min.js
    echo "axe $axe_digest" >"$folder/axe-made"
fi
