"""`schemathesis run` on a running service, as a program of its own, and its report."""

import dataclasses
import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postroad import context
from postroad.model.mail import limits
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.messages import queue_inspection
from postroad.services.people import users
from postroad.storage.mail import queue
from tests import accepted_mail, queue_steps, received_rows
from tests.conformance import live_service
from tests.openapi import case_filler
from tests.reliability import profile

ROOT = Path(__file__).parent.parent.parent
SETTINGS = Path(__file__).parent / "schemathesis.toml"
# Long after the end of every run, on a machine that is busy with other tests.
TIMEOUT_SECONDS = 1100
# Longer than that.
WAITING_SECONDS = 3600
# More than one run deletes.
RECEIVED = 40
# One place refuses every method that a path does not have, so one method is enough.
ONE_METHOD = "" if profile.IS_LONG else 'unexpected-methods = ["PUT"]\n'
# One place refuses members of the wrong form, so random requests of that kind are enough, except where mail is sent.
GOOD_ALONE = "" if profile.IS_LONG else 'generation.mode = "positive"\n'


@dataclass(frozen=True, slots=True)
class Outcome:
    """What schemathesis found: its exit code, what it printed for people, and what it wrote for programs."""

    code: int
    printed: str
    report: dict[str, Any]


def run(
    service: live_service.Service, folder: Path, *words: str, members_alone: bool = False, is_sending: bool = True
) -> Outcome:
    """Test the service by its own document; `words` are further options of `schemathesis run`.

    In `make test` the requests just beyond each bound are made of operations that send.
    """
    report = folder / "report.json"
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "--config-file",
        str(_settings(service, folder, is_sending=is_sending)),
        "run",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        # Building the Unicode tables takes seconds; share those of the other tests.
        "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"),
        case_filler.VARIABLE: str(_facts(service, folder, members_alone=members_alone)),
    }
    finished = subprocess.run(
        [*command, f"{service.base_url}/openapi.json", "--no-color", "--report-json-path", str(report), *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return Outcome(finished.returncode, finished.stdout, json.loads(report.read_text()) if report.exists() else {})


def _settings(service: live_service.Service, folder: Path, *, is_sending: bool) -> Path:
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
        f"{SETTINGS.read_text()}\n[phases.coverage]\n{ONE_METHOD}{'' if is_sending else GOOD_ALONE}"
        f'[auth.wfc]\npath = "{callers}"\nuser = "mine"\npeers = ["mine", "theirs"]\n'
    )
    return settings


def _facts(service: live_service.Service, folder: Path, *, members_alone: bool) -> Path:
    waiting = service.installation.ask(lambda ctx: _defer(ctx, service.mine))
    given = case_filler.ServiceFacts(
        base_url=service.base_url,
        domain=service.mine.domain,
        owner=service.mine.owner,
        basic=service.mine.basic,
        api_key=service.mine.api_key,
        reading_key=service.mine.reading_key,
        email=f"owner@{service.mine.domain}",
        changing_email=service.installation.ask(lambda ctx: _add_person(ctx, service.mine)),
        password=live_service.PASSWORD,
        waiting_message=waiting[0][1],
        waiting_recipients=[key[2] for key in waiting],
        received=service.installation.ask(lambda ctx: _receive(ctx, service.mine)),
        members_alone=members_alone,
    )
    file = folder / "surroundings.json"
    file.write_text(json.dumps(dataclasses.asdict(given)))
    return file


async def _add_person(ctx: context.Context, account: live_service.Account) -> str:
    """Somebody for this run alone, because their password changes."""
    email = f"{uuid.uuid4()}@{account.domain}"
    await users.create(ctx, account.id, email=email, password=live_service.PASSWORD, role=callers.Role.OWNER)
    return email


async def _receive(ctx: context.Context, account: live_service.Account) -> list[str]:
    """Mail for this run alone."""
    return [(await received_rows.put(ctx, account.id)).id for _ in range(RECEIVED)]


async def _defer(ctx: context.Context, account: live_service.Account) -> list[queue.Key]:
    """The recipients of a message for this run alone, who wait for their next attempt and may be tried at once."""
    domain = f"{uuid.uuid4()}.example"
    to = tuple(f"person-{number}@{domain}" for number in range(limits.UNIQUE_RECIPIENTS))
    await accepted_mail.accept(ctx, account.id, sender=f"shop@{account.domain}", to=to)
    waiting = await queue_steps.claim(ctx, account.id, most=len(to), domain=domain)
    tried_at = ctx.clock() - queue_inspection.MIN_RETRY_INTERVAL_SECONDS * times.SECOND - times.SECOND
    then = dataclasses.replace(ctx, clock=lambda: tried_at)
    for key in waiting:
        await queue_steps.defer(then, key, seconds=WAITING_SECONDS)
    return waiting
