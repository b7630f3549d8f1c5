"""`schemathesis run` on a running service, as a program of its own, and its report."""

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import running
from tests.openapi import furnishing

ROOT = Path(__file__).parent.parent.parent
SETTINGS = Path(__file__).parent / "schemathesis.toml"
VARIABLE = "TESTS_OPENAPI_SURROUNDINGS"
# Long after the end of every run, on a machine that is busy with other tests.
PATIENCE_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """What schemathesis found: its exit code, what it printed for people, and what it wrote for programs."""

    code: int
    printed: str
    report: dict[str, Any]


def changing_email(service: running.Service) -> str:
    return f"changing@{service.mine.domain}"


def run(service: running.Service, folder: Path, *words: str) -> Outcome:
    """Test the service by its own document; `words` are further options of `schemathesis run`."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(_settings(service, folder)), "run"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), VARIABLE: str(_surroundings(service, folder))}
    finished = subprocess.run(
        [*command, f"{service.base_url}/openapi.json", "--no-color", "--report-json-path", str(report), *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return Outcome(
        finished.returncode, finished.stdout, json.loads(report.read_text()) if report.exists() else {}
    )


def _settings(service: running.Service, folder: Path) -> Path:
    """Requests are sent as `mine`; `theirs` must not see what they make."""
    callers = folder / "callers.json"
    callers.write_text(
        json.dumps(
            {
                "auth": [
                    {"name": name, "fixedHeaders": [{"name": "Authorization", "value": account.owner}]}
                    for name, account in (("mine", service.mine), ("theirs", service.theirs))
                ]
            }
        )
    )
    settings = folder / "schemathesis.toml"
    settings.write_text(
        f'{SETTINGS.read_text()}\n[auth.wfc]\npath = "{callers}"\nuser = "mine"\npeers = ["mine", "theirs"]\n'
    )
    return settings


def _surroundings(service: running.Service, folder: Path) -> Path:
    given = furnishing.Surroundings(
        base_url=service.base_url,
        domain=service.mine.domain,
        owner=service.mine.owner,
        basic=service.mine.basic,
        api_key=service.mine.api_key,
        reading_key=service.mine.reading_key,
        email=f"owner@{service.mine.domain}",
        changing_email=changing_email(service),
        password=running.PASSWORD,
    )
    file = folder / "surroundings.json"
    file.write_text(json.dumps(dataclasses.asdict(given)))
    return file
