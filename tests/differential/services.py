"""The service of a checkout with its own interpreter, and the accounts and keys that both sides have.

Each side has secrets of its own. A request names them, as `@@key:shop@@`, and each client puts in those of its side.
"""

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import process

CONFIGURATION: Final = """
[database]
url = "sqlite:///{folder}/postroad.db"
[http]
listen = "127.0.0.1:{http}"
base_url = "http://postroad.test"
trusted_proxies = ["127.0.0.1"]
processes = {frontends}
drain_seconds = 0
[submission]
listen = "127.0.0.1:{smtp}"
auth_without_tls = true
[security]
installation_key = "0123456789012345678901234567890123456789"
[domains]
check_hours = 0
[delivery]
hostname = "postroad.test"
resolvers = ["127.0.0.1:1"]
[limits]
request_rate = 1000000
request_burst = 1000000
api_rate = 1000000
[warmup]
enabled = false
[testing]
hourly_checks = false
"""
# Nothing is delivered: a result would come at another moment on each side.
ROLES: Final = ("api", "submission")
START_SECONDS: Final = 600.0
# What its commands print, by the name under which a request may use it; the command after it makes it.
SHOP: Final = ("--account", "Shop")
COMMANDS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("", ("migrate",)),
    *(("", ("account", "create", "--name", name)) for name in ("Shop", "Poor", "Suspended", "Few")),
    *(("", ("credits", "add", "--account", name, "--amount", "1000000")) for name in ("Shop", "Suspended", "Few")),
    *(
        (name, ("domain", "add", "--account", account, *verified, domain))
        for name, account, domain, verified in (
            ("domain:shop", "Shop", "shop.example.com", ("--verified",)),
            ("domain:second", "Shop", "second.example.com", ("--verified",)),
            ("domain:unverified", "Shop", "unverified.example.com", ()),
            ("domain:poor", "Poor", "poor.example.com", ("--verified",)),
            ("domain:suspended", "Suspended", "suspended.example.com", ("--verified",)),
            ("domain:few", "Few", "few.example.com", ("--verified",)),
        )
    ),
    ("user:shop", ("user", "create", "owner@shop.example.com", *SHOP)),
    ("user:reader", ("user", "create", "reader@shop.example.com", *SHOP, "--role", "read_only")),
    ("token:shop", ("token", "owner@shop.example.com", *SHOP)),
    ("token:reader", ("token", "reader@shop.example.com", *SHOP)),
    *((f"login:{name.lower()}", ("credential", "create", "--account", name)) for name in ("Shop", "Poor", "Suspended")),
    ("template:welcome", ("template", "put", "welcome", *SHOP, "--subject", "Hello {{name}}", "--text", "Hi {{name}}")),
    (
        "template:list",
        (
            *("template", "put", "list", *SHOP, "--subject", "{{count}} parcels"),
            *("--html", "<ul>{{#parcels}}<li>{{name}}</li>{{/parcels}}</ul>"),
        ),
    ),
    *(
        (f"key:{name}", ("apikey", "create", "--account", account, "--name", name, *words))
        for name, account, words in (
            ("shop", "Shop", ("--scope", "send", "--scope", "read")),
            ("all", "Shop", ("--scope", "*")),
            ("send", "Shop", ()),
            ("read", "Shop", ("--scope", "read")),
            ("test", "Shop", ("--test", "--scope", "send", "--scope", "read")),
            ("domains", "Shop", ("--domain", "second.example.com")),
            ("templates", "Shop", ("--template", "welcome")),
            ("networks", "Shop", ("--network", "192.0.2.0/24")),
            ("daily", "Shop", ("--recipients-per-day", "6")),
            ("budget", "Shop", ("--credit-budget", "6")),
            ("approval", "Shop", ("--approval-above", "2")),
            ("poor", "Poor", ()),
            ("suspended", "Suspended", ()),
            ("few", "Few", ()),
        )
    ),
    ("", ("account", "limits", "Few", "--recipients-per-day", "6")),
    ("", ("account", "suspend", "Suspended", "--reason", "too many complaints")),
)
# All in one process: most of a command's time is its start.
RUN_COMMANDS: Final = """
import contextlib, io, json, sys
from postroad import cli
outputs = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        cli.main(words, standalone_mode=False)
    outputs.append(printed.getvalue())
json.dump(outputs, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Service:
    """A running side: where it listens, and its secrets by name."""

    http: tuple[str, int]
    smtp: tuple[str, int]
    secrets: Mapping[str, bytes]


def start_both(
    stack: contextlib.ExitStack, folder: Path, checkouts: Sequence[Path], *, frontends: int
) -> Sequence[Service]:
    """Both services, stopped when the stack is."""
    with futures.ThreadPoolExecutor() as threads:
        started = [
            threads.submit(_start, stack, folder / str(number), checkout, frontends)
            for number, checkout in enumerate(checkouts)
        ]
        return [future.result() for future in started]


def _start(stack: contextlib.ExitStack, folder: Path, checkout: Path, frontends: int) -> Service:
    folder.mkdir()
    own = checkout / ".venv/bin/python"
    interpreter = str(own) if own.exists() else sys.executable
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("POSTROAD_", "PG"))}
    environment["PYTHONPATH"] = str(checkout / "src")
    http, smtp = process.free_port(), process.free_port()
    configuration = folder / "postroad.toml"
    configuration.write_text(CONFIGURATION.format(folder=folder, http=http, smtp=smtp, frontends=frontends))
    words = [[*words, "--config", str(configuration)] for _, words in COMMANDS]
    # `migrate` and its like print text; the others JSON.
    words = [[*each, "--json"] if name else each for each, (name, _) in zip(words, COMMANDS, strict=True)]
    done = subprocess.run(
        [interpreter, "-c", RUN_COMMANDS],
        input=json.dumps(words),
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the accounts of {checkout} were not created: {done.stderr}")
    printed = {
        name: json.loads(output) for output, (name, _) in zip(json.loads(done.stdout), COMMANDS, strict=True) if name
    }
    log = folder / "service.log"
    roles = [word for role in ROLES for word in ("--role", role)]
    with log.open("wb") as file:
        service = subprocess.Popen(
            [interpreter, "-m", "postroad", "serve", "--config", str(configuration), *roles],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
            env=environment,
            cwd=folder,
        )
    stack.callback(process.stop, service)
    end = time.monotonic() + START_SECONDS
    while b'"event":"started"' not in log.read_bytes():
        if service.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the service of {checkout} did not start: {log.read_text()}")
        time.sleep(0.05)
    return Service(("127.0.0.1", http), ("127.0.0.1", smtp), _secrets(printed))


def _secrets(printed: Mapping[str, Mapping[str, Any]]) -> Mapping[str, bytes]:
    secrets: dict[str, str] = {}
    for name, output in printed.items():
        kind, _, whose = name.partition(":")
        match kind:
            case "key":
                secrets[name] = output["api_key"]["key"]
                secrets[f"hint:{whose}"] = output["api_key"]["hint"]
            case "token":
                secrets[name] = output["token"]
            case "login":
                username, password = output["credential"]["username"], output["credential"]["password"]
                secrets[f"username:{whose}"] = username
                secrets[f"basic:{whose}"] = _base64(f"{username}:{password}")
                secrets[f"plain:{whose}"] = _base64(f"\0{username}\0{password}")
                secrets[f"username64:{whose}"] = _base64(username)
                secrets[f"password64:{whose}"] = _base64(password)
            case "domain":
                for number, found in enumerate(sorted(set(re.findall(r"p[re][a-z0-9]{8}(?=\._)", str(output))))):
                    secrets[f"selector{number}:{whose}"] = found
                for number, found in enumerate(sorted(set(re.findall(r"p=([A-Za-z0-9+/=]{40,})", str(output))))):
                    secrets[f"dkim{number}:{whose}"] = found
            case _:
                pass
        for kind_of_id in ("domain", "template", "user"):
            if kind_of_id == kind:
                secrets[f"id:{name}"] = output[kind_of_id]["id"]
    return {name: secret.encode() for name, secret in secrets.items()}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
