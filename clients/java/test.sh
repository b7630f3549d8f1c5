#!/bin/sh
# Compiles the library and its tests and runs them, without Maven.
#   sh test.sh FOLDER
# JUNIT names the console launcher of JUnit 5, by default that of the Debian package junit5. SPRING is a class path with
# Spring's context-support, by default that of the Debian package libspring-context-support-java.
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
sources="src/test/java/dev/postroad/*.java"
jars=/usr/share/java
spring=${SPRING:-}
if [ -z "$spring" ] && [ -f $jars/spring3-context.support.jar ]; then
    for part in context.support context beans core aop expression; do
        spring="$spring$jars/spring3-$part.jar:"
    done
    spring="$spring$jars/commons-logging.jar"
fi
if [ -n "$spring" ]; then
    sources="$sources src/main/java/dev/postroad/spring/*.java src/test/java/dev/postroad/spring/*.java"
else
    echo "Spring is missing, its tests are skipped: install the package libspring-context-support-java" >&2
fi
# The jars of Debian name others that are not installed. (The list of sources is meant to be split.)
javac -Xlint:all,-classfile,-path -Werror --release 17 -encoding UTF-8 -cp "$folder/library:$junit:$spring" \
    -d "$folder/tests" $sources
java -jar "$junit" --class-path "$folder/library:$folder/tests:$spring" --scan-class-path "$folder/tests" \
    --disable-banner --details tree --fail-if-no-tests
