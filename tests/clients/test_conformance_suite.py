"""The conformance suite itself: a good client passes, and each kind of bad one is caught where it should be."""

import asyncio
import dataclasses
import json
import sys
from pathlib import Path

import pytest

from clients.conformance import answers, languages, requests, runner, scenario_player, scenarios, table, wire
from clients.conformance.driver import Driver, Program

FAULTY = Path(__file__).parent / "faulty_driver.py"
ROOT = Path(__file__).parent.parent.parent
SUITE = scenarios.load()
BY_NAME = {scenario.name: scenario for scenario in SUITE.scenarios}
# Drivers that run side by side; pauses are measured, so they may not keep each other from the processor.
AT_A_TIME = 6
# A way to be wrong, a scenario that must notice, and what the suite must say.
CAUGHT = [
    ("makes a new key", "429 twice, then 202", "the key changed"),
    ("makes a new key", "a reset before the response, then 202", "the key changed"),
    ("has one key for all", "send with the required fields only", "was made for an earlier send"),
    ("changes the body", "429 twice, then 202", "the bytes of the body changed"),
    ("follows redirects", "301 is not followed", "too many"),
    ("follows redirects", "307 is not followed", "too many"),
    ("repeats everything", "400 invalid_request", "expected 1 requests"),
    ("gives up at proxies", "502 with a page of HTML, then 202", "expected result"),
    ("gives up at proxies", "500 internal_error, then 202", "expected result"),
    ("gives up at proxies", "500 internal_error", "error.is_retryable: expected True"),
    ("counts attempts", "503 five times, then 202", "expected 6 requests, came 5"),
    ("repeats too often", "503 temporary_failure without retries", "expected 1 requests, came 2"),
    ("waits too little", "503 service_unavailable three times, at last until tomorrow", "expected 3 requests"),
    ("has one kind", "404 not_found", 'error.kind: expected "not_found"'),
    ("has one kind", "connection refused", 'error.kind: expected "connection_failed"'),
    ("believes the status", "wait trusts recipients, not the status of the message", "expected 2 requests, came 1"),
    ("gives up when refused", "connection refused at first, then 202", "expected result"),
    ("does not wait", "429 twice, then 202", "before retry 1: expected a pause of 0.25"),
    ("ignores Retry-After", "Retry-After in seconds is honoured", "expected a pause of 1.25"),
    ("ignores Retry-After", "Retry-After as a date is honoured", "expected a pause of 1.25"),
    ("ignores Retry-After", "429 warmup_limited until tomorrow gives up at once", "expected 1 requests"),
    ("trusts half an answer", "a connection closed within the response, then 202", "em_half"),
    ("trusts half an answer", "a connection closed before the last chunk, then 202", "em_half"),
    ("sends null", "send with the required fields only", "body.cc: expected nothing"),
    ("hides its name", "send with the required fields only", "user-agent"),
    ("tells the token", "400 invalid_request", "contains a secret"),
    ("forgets the key", "409 idempotency_conflict", "error.idempotency_key"),
    ("is always poor", "400 invalid_request", "error.is_insufficient_credits"),
    ("takes every id", "refused: an id that is a path", "too many"),
    ("ends in the middle", "send with the required fields only", "the driver has ended"),
]


def driver(fault: str, folder: Path, number: int = 0) -> Driver:
    return Driver(Program([sys.executable, str(FAULTY), fault], ROOT, {}), errors=folder / f"stderr-{number}")


async def played(fault: str, *names: str, folder: Path, drivers: int = 1) -> list[str]:
    """What the suite finds when drivers with a fault play these scenarios."""
    SUITE.write_files(folder)
    faulty = [driver(fault, folder, number) for number in range(drivers)]
    chosen = [BY_NAME[name] for name in names]
    rows = await scenario_player.play_all(faulty, chosen, agent="postroad-python", files=folder)
    for each in faulty:
        await each.close()
    return [line for found in rows.values() for line in found or []]


async def test_a_client_without_a_fault_passes_where_faults_are_looked_for(tmp_path: Path) -> None:
    names = dict.fromkeys(name for _, name, _ in CAUGHT)
    assert await played("none", *names, folder=tmp_path, drivers=runner.DRIVERS) == []


async def test_every_fault_is_caught(tmp_path: Path) -> None:
    """Side by side, because most of the time goes into pauses before retries."""
    turns = asyncio.Semaphore(AT_A_TIME)

    async def is_caught(number: int, fault: str, name: str, words: str) -> bool:
        folder = tmp_path / str(number)
        folder.mkdir()
        # A key that is used again needs a second send to be noticed.
        names = [name, name] if fault == "has one key for all" else [name]
        async with turns:
            return words in "\n".join(await played(fault, *names, folder=folder))

    caught = await asyncio.gather(*(is_caught(number, *case) for number, case in enumerate(CAUGHT)))
    assert [case for case, is_noticed in zip(CAUGHT, caught, strict=True) if not is_noticed] == []


async def test_a_verifier_that_trusts_everybody_is_caught(tmp_path: Path) -> None:
    trusting = driver("trusts every webhook", tmp_path)
    invalid = [vector["name"] for vector in scenarios.load_vectors() if not vector["valid"]]
    assert [line.partition(": expected")[0] for line in await scenario_player.try_vectors(trusting)] == invalid
    await trusting.close()


async def test_a_parser_that_trusts_everybody_is_caught(tmp_path: Path) -> None:
    trusting = driver("trusts every webhook", tmp_path)
    forged = [event["name"] for event in scenarios.load_vectors("events") if event["expect"] == {"error": "signature"}]
    forged += [vector["name"] for vector in scenarios.load_vectors() if not vector["valid"]]
    found = {line.partition(": ")[0] for line in await scenario_player.try_events(trusting)}
    assert len(forged) > 30
    assert set(forged) - found == set()
    await trusting.close()


async def test_a_pause_that_ends_in_nothing_is_caught(tmp_path: Path) -> None:
    given = BY_NAME["Retry-After beyond max_elapsed gives up at once"]
    client = {**given.call["client"], "max_elapsed": 2}
    hasty = dataclasses.replace(
        given, call={**given.call, "client": client}, expect={**given.expect, "within": 1.5, "error": {"status": 503}}
    )
    faulty = driver("waits in vain", tmp_path)
    await faulty.ask({"operation": "verify", "body_base64": "", "header": "", "secret": "s", "tolerance": 1, "now": 1})
    found = await scenario_player.Player(faulty, agent="postroad-python", files=tmp_path).play(hasty)
    assert [line.partition(",")[0] for line in found or []] == ["expected an end within 1.5 seconds"]
    await faulty.close()


async def test_a_driver_that_fails_is_started_again_but_not_for_ever(tmp_path: Path) -> None:
    found = await played("ends in the middle", *list(BY_NAME)[:6], folder=tmp_path)
    assert ["the driver has ended" in line for line in found] == [True] * 4 + [False] * 2
    assert "not started again" in found[-1]


def test_no_two_scenarios_have_one_name() -> None:
    assert len(BY_NAME) == len(SUITE.scenarios)


def test_every_code_of_the_documentation_has_a_scenario() -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    codes = {
        line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and "/" not in line.split("`")[1]
    }
    played_codes = {
        step["json"].get("code")
        for scenario in SUITE.scenarios
        for step in scenario.server
        if isinstance(step.get("json"), dict)
    }
    assert len(codes) == 15
    assert codes - played_codes == set()


@pytest.mark.parametrize(
    "expected, came, is_same",
    [
        ({"id": "a"}, {"id": "a", "more": 1}, True),
        ({"id": "a"}, {"id": "b"}, False),
        ({"to": []}, {}, True),
        ({"to": []}, {"to": ["a"]}, False),
        ({"to": ["a", "b"]}, {"to": ["b", "a"]}, False),
        ({"created_at": "2026-01-31T12:00:00.5Z"}, {"created_at": "2026-01-31T13:00:00.500+01:00"}, True),
        ({"created_at": "2026-01-31T12:00:00Z"}, {"created_at": "2026-01-31T12:00:01Z"}, False),
        ({"created_at": "2026-01-31T12:00:00Z"}, {"created_at": "2026-01-31T12:00:00"}, False),
        ({"is": True}, {"is": 1}, False),
        ({"is": False}, {"is": None}, False),
    ],
)
def test_answers_are_compared_as_the_readme_says(expected: object, came: object, *, is_same: bool) -> None:
    assert (answers.differences("x", expected, came) == []) is is_same


@pytest.mark.parametrize("pause, is_good", [(0.1, False), (0.25, True), (0.5, True), (40.0, False)])
def test_a_pause_may_be_too_short_and_too_long(pause: float, *, is_good: bool) -> None:
    scenario = BY_NAME["503 temporary_failure for get, then 200"].at({"base_url": "http://127.0.0.1:1"})
    headers = [("authorization", "Bearer pr_live_conformance"), ("host", "h"), ("user-agent", "postroad-go/0.1.0")]
    path = f"/emails/{scenario.call['id']}"
    first, second = (wire.Request("GET", path, headers, b"", began_at) for began_at in (100.0, 101.0 + pause))
    first.answered_at = 101.0
    assert (requests.problems(scenario, [first, second], agent="postroad-go") == []) is is_good


def test_the_table_shows_failures_and_names_what_is_missing() -> None:
    good, bad, absent = (languages.LANGUAGES[number] for number in (0, 2, 4))
    reports = [
        runner.Report(good, [], {"one": [], "two": None}),
        runner.Report(bad, [], {"one": ["expected 1, came 2"], "two": []}),
        runner.Report(absent, ["go"]),
    ]
    assert table.markdown(reports).splitlines() == [
        "| scenario | Python | JavaScript |",
        "| -------- | ------ | ---------- |",
        "| one      | ok     | FAILED     |",
        "| two      | -      | ok         |",
    ]
    assert table.failures(reports) == ["FAILED JavaScript: one\n    expected 1, came 2"]
    assert "Go COULD NOT RUN: go is missing." in table.box(reports)
    assert "apt-get install -y --no-install-recommends golang-go" in table.box(reports)
    assert [report.is_good for report in reports] == [True, False, True]


def test_javascript_and_python_must_not_be_missing() -> None:
    required = [language.name for language in languages.LANGUAGES if not runner.Report(language, ["a tool"]).is_good]
    assert required == ["python", "python-async", "javascript"]


def test_scenarios_hold_no_place_that_nobody_fills_in() -> None:
    places = {"base_url": "B", "port": "P", "files": "F"}
    filled = json.dumps([[each.call, each.server, each.expect] for each in (one.at(places) for one in SUITE.scenarios)])
    assert [place for place in places if f"{{{place}}}" in filled] == []
