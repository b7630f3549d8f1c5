"""The verifying code of docs/webhooks.md and examples/webhooks, run with their tools against the shared vectors.

A driver around the code reads a vector a line (body, header, secret, clock; all but the last in base64, `-` for no
header) and prints what the code says. A language whose tools are not installed is skipped.
"""

import base64
import json
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
EXAMPLES = ROOT / "examples" / "webhooks"
CODE = {
    **dict(BLOCK.findall(PAGE)),
    "javascript": (EXAMPLES / "verify.mjs").read_text(),
    "php": (EXAMPLES / "verify.php").read_text().removeprefix("<?php\n"),
}
# A bound for a machine that is busy with other tests.
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


@dataclass(frozen=True, slots=True)
class Language:
    """How a program is made of an example, and run."""

    tool: str
    file: str
    program: str


def language(name: str) -> Language:
    return {
        "python": Language(sys.executable, "driver.py", f"{CODE[name]}\n{PYTHON}"),
        "javascript": Language("node", "driver.mjs", f"{CODE[name]}\n{JAVASCRIPT}"),
        "php": Language("php", "driver.php", f"<?php\n{CODE[name]}\n{PHP}"),
    }[name]


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def written(vector: dict[str, Any]) -> str:
    header = "-" if vector["header"] is None else coded(vector["header"])
    return f"{vector['body_base64']} {header} {coded(vector['secret'])} {vector['now']}\n"


def test_there_is_an_example_in_each_language() -> None:
    assert list(CODE) == ["python", "javascript", "php"]


@pytest.mark.parametrize("name", CODE)
def test_an_example_says_of_every_vector_what_is_right(name: str, tmp_path: Path) -> None:
    chosen = language(name)
    if shutil.which(chosen.tool) is None:
        pytest.skip(f"{name}: {chosen.tool} is not installed")
    (tmp_path / chosen.file).write_text(chosen.program)
    done = subprocess.run(
        (chosen.tool, chosen.file),
        cwd=tmp_path,
        input="".join(map(written, VECTORS)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    said = done.stdout.split()
    assert dict(zip((vector["name"] for vector in VECTORS), said, strict=True)) == {
        vector["name"]: str(vector["valid"]).lower() for vector in VECTORS
    }
