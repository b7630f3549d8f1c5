#!/bin/sh
# Compiles the library and its tests and runs them, without Maven.
#   sh test.sh FOLDER
# JUNIT names the console launcher of JUnit 5, by default that of the Debian package junit5.
set -eu
if [ $# -ne 1 ]; then
    echo "usage: sh test.sh FOLDER" >&2
    exit 2
fi
junit=${JUNIT:-/usr/share/java/junit-platform-console-standalone.jar}
if [ ! -f "$junit" ]; then
    echo "JUnit is missing: install the package junit5, or name the jar in JUNIT" >&2
    exit 1
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")"

sh build.sh "$folder/library"
rm -rf "$folder/tests"
javac -Xlint:all,-classfile -Werror --release 17 -encoding UTF-8 -cp "$folder/library:$junit" -d "$folder/tests" \
    src/test/java/dev/postroad/*.java
java -jar "$junit" --class-path "$folder/library:$folder/tests" --scan-class-path "$folder/tests" \
    --disable-banner --details tree --fail-if-no-tests
