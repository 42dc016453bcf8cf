#!/usr/bin/env bash
# Find a Java that Spark runs on, version 17 or later, and print its home folder.
#
#   scripts/java.sh find      look in JAVA_HOME, on PATH and among the Javas of the distribution
#   scripts/java.sh ensure    the same, and install one with apt-get if there is none
#
# JVM_FOLDER is where the distribution keeps its Javas, /usr/lib/jvm by default.
set -eu
cd "$(dirname "$0")/.."

oldest=17

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# Print one of the properties that Java reports. Before Java 9 the version is written 1.8.
property() { printf '%s\n' "$2" | sed -n "s/^ *java\\.$1 = \\(1\\.\\)\\{0,1\\}//p"; }

# Print the home of the Java at $1 if it is new enough; otherwise report why it is not used.
try() {
    local reported version home
    [ -x "$1" ] || return 1
    reported=$("$1" -XshowSettings:properties -version 2>&1) || true
    version=$(property specification.version "$reported")
    home=$(property home "$reported")
    case "$version" in
        "" | *[!0-9]*) say "$1 does not report its version as Java does; skipping it" ;;
        *)
            if [ "$version" -ge "$oldest" ] && [ -n "$home" ]; then
                printf '%s\n' "$home"
                return 0
            fi
            say "$1 is Java $version, Spark needs $oldest or later; skipping it"
            ;;
    esac
    return 1
}

find_java() {
    local candidate
    if [ -n "${JAVA_HOME:-}" ]; then
        if try "$JAVA_HOME/bin/java"; then return 0; fi
        [ -x "$JAVA_HOME/bin/java" ] \
            || say "JAVA_HOME=$JAVA_HOME holds no bin/java; skipping it"
    fi
    for candidate in "$(command -v java || true)" "${JVM_FOLDER:-/usr/lib/jvm}"/*/bin/java; do
        if try "$candidate"; then return 0; fi
    done
    return 1
}

hint="install Java $oldest or later, or unpack one and name its folder:"
hint="$hint JAVA_HOME=/path/to/java make setup"
case "${1:-}" in
    find) find_java || fail "no Java of version $oldest or later found; $hint" ;;
    ensure)
        if find_java; then exit 0; fi
        say "no Java of version $oldest or later found"
        scripts/apt.sh openjdk-21-jre-headless openjdk-17-jre-headless openjdk-25-jre-headless \
            || fail "$hint"
        find_java 2>/dev/null || fail "a Java was installed but is not found; $hint"
        ;;
    *) fail "use: scripts/java.sh find | ensure" ;;
esac
