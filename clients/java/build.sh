#!/bin/sh
# Compiles the library and its driver for the conformance suite, without Maven.
#   sh build.sh FOLDER
#   java -cp FOLDER dev.postroad.Driver
set -eu
if [ $# -ne 1 ]; then
    echo "usage: sh build.sh FOLDER" >&2
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")"

rm -rf "$folder/dev"
javac -Xlint:all -Werror --release 17 -encoding UTF-8 -d "$folder" src/main/java/dev/postroad/*.java \
    conformance/*.java
