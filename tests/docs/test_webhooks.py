"""What docs/webhooks.md says in tables and numbers is what the code does."""

import json
import re
from pathlib import Path

import msgspec

from postroad import config
from postroad.model.bounces import reasons
from postroad.model.events import events
from postroad.network.http import guarded_client as webhook_client
from postroad.protocol.signatures import webhook_signature
from postroad.services.webhooks import delivery_log, endpoints
from postroad.services.webhooks import signed_requests as webhook_attempt
from tests import webhook_endpoints
from tests.docs import markdown

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "webhooks.md").read_text()
UNITS = {"second": 1, "minute": 60, "hour": 3600}


def names(title: str) -> list[str]:
    return [markdown.CODE.findall(row[0])[0] for row in markdown.rows(PAGE, title)]


def seconds(text: str) -> int:
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+) (second|minute|hour)", text))


def example() -> bytes:
    return PAGE.split("<!-- example: event -->\n```json\n")[1].split("\n```")[0].encode()


def test_the_example_of_the_page_about_events_is_an_event_of_version_2() -> None:
    text = re.findall(r"```json\n(.+?)\n```", (DOCS / "webhook-events.md").read_text(), re.DOTALL)[0]
    event = json.loads(text)
    webhook_endpoints.check_schema(event, events.V2)
    decoded = msgspec.json.decode(text, type=events.Event[events.DataV2])
    assert msgspec.json.format(msgspec.json.encode(decoded), indent=2).decode() == text
    assert event["data"]["cause"] in reasons.REASONS


def test_the_example_is_an_event_as_it_is_sent() -> None:
    event = msgspec.json.decode(example(), type=events.Event)
    sent = msgspec.json.encode(event)
    assert msgspec.json.format(sent, indent=2) == example()


def test_the_headers_are_those_that_are_sent() -> None:
    found = {row[0].strip("`"): row[1].strip("`") for row in markdown.rows(PAGE, "header")}
    assert list(found) == ["Content-Type", "User-Agent", webhook_signature.HEADER]
    assert found["User-Agent"] == webhook_attempt.USER_AGENT


def test_the_table_of_attempts_is_the_schedule() -> None:
    delays = config.load(environment={}, overrides={}).webhooks.retry_seconds
    numbers = re.findall(r"(?m)^\| attempt \| (.*) \|$", PAGE)
    assert [number.split(" | ") for number in numbers] == [[str(number) for number in range(1, len(delays) + 2)]]
    ((_, *shown),) = markdown.rows(PAGE, "attempt")
    assert [seconds(cell) for cell in shown] == [0, *delays]
    # The five seconds of the second attempt are not worth a word.
    (total,) = re.findall(r"After the seventh attempt, (.*) after the event, the delivery is `failed`", PAGE)
    assert seconds(total) == sum(delays[1:])


def test_every_code_of_the_log_is_explained() -> None:
    assert sorted(names("error in the log")) == sorted(webhook_client.FailureCode)


def test_the_numbers_are_those_of_the_code() -> None:
    for said in (
        f"Respond with 2xx within {webhook_client.ATTEMPT_SECONDS:.0f} seconds",
        f"its first {webhook_client.BODY_BYTES // 1024} KB are kept",
        f"more than {webhook_signature.TOLERANCE_SECONDS} seconds away",
        f"kept for {delivery_log.LOG_SECONDS // 86_400} days",
        f"for at most {endpoints.MAX_OVERLAP_HOURS} hours each",
    ):
        assert said in PAGE
    assert endpoints.MAX_OLD_SECRETS == 5
    assert "Up to five old secrets" in PAGE
