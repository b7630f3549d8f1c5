"""The verifying code of docs/webhooks.md, run with each language's own tools against the shared vectors.

A driver around the code reads a vector a line (body, header, secret, clock; all but the last in base64, `-` for no
header) and prints what the code says. A language whose tools are not installed is skipped.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "webhooks.md").read_text()
VECTORS: list[dict[str, Any]] = json.loads((ROOT / "clients" / "conformance" / "webhook-signatures.json").read_text())[
    "vectors"
]
BLOCK = re.compile(r"<!-- verify: (\w+) -->\n```\w+\n(.*?)\n```", re.DOTALL)
CODE = dict(BLOCK.findall(PAGE))
MAX_LINES = 25
# A bound for a machine that is busy with other tests and has never compiled Go before.
TIMEOUT_SECONDS = 300

PYTHON = """
import base64, sys
for line in sys.stdin:
    body, header, secret, now = line.rstrip("\\n").split(" ")
    given = None if header == "-" else base64.b64decode(header).decode()
    print(str(is_genuine(base64.b64decode(body), given, base64.b64decode(secret).decode(), int(now))).lower())
"""
JAVASCRIPT = """
import fs from "node:fs";
for (const line of fs.readFileSync(0, "utf8").trimEnd().split("\\n")) {
  const [body, header, secret, now] = line.split(" ");
  const given = header === "-" ? undefined : Buffer.from(header, "base64").toString();
  console.log(isGenuine(Buffer.from(body, "base64"), given, Buffer.from(secret, "base64").toString(), Number(now)));
}
"""
PHP = """
while (($line = fgets(STDIN)) !== false) {
    [$body, $header, $secret, $now] = explode(' ', rtrim($line, "\\n"));
    $given = $header === '-' ? null : base64_decode($header);
    echo is_genuine(base64_decode($body), $given, base64_decode($secret), (int) $now) ? "true\\n" : "false\\n";
}
"""
GO = """
func decoded(text string) []byte {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return raw
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), " ")
		header := ""
		if fields[1] != "-" {
			header = string(decoded(fields[1]))
		}
		now, _ := strconv.ParseInt(fields[3], 10, 64)
		fmt.Println(IsGenuine(decoded(fields[0]), header, string(decoded(fields[2])), now))
	}
}
"""
RUBY = """
$stdin.each_line(chomp: true) do |line|
  body, header, secret, now = line.split(/ /, -1)
  given = header == "-" ? nil : header.unpack1("m").force_encoding("UTF-8")
  puts genuine?(body.unpack1("m"), given, secret.unpack1("m"), now.to_i)
end
"""
JAVA = """
class Driver {
    static String text(String coded) {
        return new String(java.util.Base64.getDecoder().decode(coded), StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split(" ", -1);
            byte[] body = java.util.Base64.getDecoder().decode(fields[0]);
            String header = fields[1].equals("-") ? null : text(fields[1]);
            System.out.println(Webhooks.isGenuine(body, header, text(fields[2]), Long.parseLong(fields[3])));
        }
    }
}
"""


@dataclass(frozen=True, slots=True)
class Language:
    """How a program is made of an example, and run."""

    tool: str
    file: str
    program: str
    run: tuple[str, ...]
    build: tuple[str, ...] = ()


def language(name: str) -> Language:
    code = CODE[name]
    if name == "go":
        imports = 'package main\n\nimport (\n\t"bufio"\n\t"encoding/base64"\n\t"fmt"\n\t"os"\n)\n\n'
        return Language(
            "go", "main.go", f"{imports}{code}\n{GO}", ("./driver",), ("go", "build", "-o", "driver", "main.go")
        )
    if name == "java":
        # The virtual machine would write its counters into the machine's own folder for temporary files.
        quiet = "-XX:-UsePerfData"
        build = ("javac", f"-J{quiet}", "Driver.java")
        return Language("javac", "Driver.java", f"{code}\n{JAVA}", ("java", quiet, "Driver"), build)
    return {
        "python": Language(sys.executable, "driver.py", f"{code}\n{PYTHON}", (sys.executable, "driver.py")),
        "javascript": Language("node", "driver.mjs", f"{code}\n{JAVASCRIPT}", ("node", "driver.mjs")),
        "php": Language("php", "driver.php", f"<?php\n{code}\n{PHP}", ("php", "driver.php")),
        "ruby": Language("ruby", "driver.rb", f"{code}\n{RUBY}", ("ruby", "driver.rb")),
    }[name]


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def written(vector: dict[str, Any]) -> str:
    header = "-" if vector["header"] is None else coded(vector["header"])
    return f"{vector['body_base64']} {header} {coded(vector['secret'])} {vector['now']}\n"


def own(folder: Path) -> dict[str, str]:
    """An environment in which tools write to the folder only, and ask nobody."""
    places = {name: str(folder / name.lower()) for name in ("HOME", "TMPDIR", "GOCACHE", "GOPATH", "GOTMPDIR")}
    for place in places.values():
        Path(place).mkdir()
    asks_nobody = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **places, **asks_nobody}


def run(command: tuple[str, ...], folder: Path, environment: dict[str, str], *, given: str = "") -> str:
    """What a command prints; it has to succeed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_has_an_example_in_each_language() -> None:
    assert list(CODE) == ["python", "javascript", "php", "go", "ruby", "java"]


@pytest.mark.parametrize("name", CODE)
def test_an_example_is_short(name: str) -> None:
    lines = [line for line in CODE[name].splitlines() if line and not re.match(r"import |require |\t\"|\)", line)]
    assert len(lines) <= MAX_LINES


@pytest.mark.parametrize("name", CODE)
def test_an_example_says_of_every_vector_what_is_right(name: str, tmp_path: Path) -> None:
    chosen = language(name)
    if shutil.which(chosen.tool) is None:
        pytest.skip(f"{name}: {chosen.tool} is not installed")
    (tmp_path / chosen.file).write_text(chosen.program)
    environment = own(tmp_path)
    if chosen.build:
        run(chosen.build, tmp_path, environment)
    said = run(chosen.run, tmp_path, environment, given="".join(map(written, VECTORS))).split()
    assert dict(zip((vector["name"] for vector in VECTORS), said, strict=True)) == {
        vector["name"]: str(vector["valid"]).lower() for vector in VECTORS
    }
