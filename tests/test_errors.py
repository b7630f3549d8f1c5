"""The errors, held against the documented lists: the codes that callers know, and each one's status and SMTP reply.

The table below is written out: a code that is added, lost or answered otherwise fails here. And a refusal that promises
`Retry-After` always has it.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroad
from postroad import errors

ROOT = Path(__file__).parent.parent

# code: (HTTP status, SMTP reply; None where mail over SMTP does not meet it)
DOCUMENTED = {
    "invalid_request": (400, "550 5.6.0"),
    "unauthorized": (401, "535 5.7.8"),
    "insufficient_credits": (402, "452 4.7.1"),
    "forbidden": (403, "550 5.7.1"),
    "account_suspended": (403, "550 5.7.1"),
    "not_found": (404, None),
    "conflict": (409, None),
    "idempotency_conflict": (409, None),
    "idempotency_in_progress": (409, None),
    "payload_too_large": (413, "552 5.3.4"),
    "rate_limited": (429, "451 4.7.1"),
    "warmup_limited": (429, "451 4.7.1"),
    "internal_error": (500, "451 4.3.0"),
    "service_unavailable": (503, "421 4.3.2"),
    "temporary_failure": (503, "451 4.3.0"),
}
# The codes that a caller may answer by trying again: over SMTP they are never a permanent reply.
TEMPORARY = {"idempotency_in_progress", "insufficient_credits", "rate_limited", "warmup_limited"} | {
    code for code, (status, _) in DOCUMENTED.items() if status >= 500
}
ALWAYS_SAY_WHEN = {"RateLimited", "WarmupLimited", "ServiceUnavailable", "TemporaryFailure"}
REPLY = re.compile(r"[245]\d\d [245]\.\d{1,3}\.\d{1,3}")


def refusals() -> list[type[errors.PostroadError]]:
    """All kinds of all modules, by name: which ones are imported already differs between test workers."""
    for module in pkgutil.walk_packages(postroad.__path__, "postroad."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    waiting = errors.PostroadError.__subclasses__()
    found: set[type[errors.PostroadError]] = set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        found.add(kind)
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


def with_own_code() -> Iterator[type[errors.PostroadError]]:
    """Others are special kinds of one of these, such as a wrong method, and share its code."""
    return (kind for kind in refusals() if "code" in vars(kind))


def by_code() -> dict[str, type[errors.PostroadError]]:
    return {kind.code: kind for kind in with_own_code()}


def test_the_codes_are_those_that_callers_know_and_no_others() -> None:
    assert sorted(by_code()) == sorted(DOCUMENTED)


def test_each_code_has_one_class() -> None:
    codes = [kind.code for kind in with_own_code()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("code", DOCUMENTED)
def test_a_code_has_its_documented_status_and_reply(code: str) -> None:
    status, reply = DOCUMENTED[code]
    kind = by_code()[code]
    assert kind.status == status
    assert REPLY.fullmatch(kind.smtp_reply)
    if reply is not None:
        assert kind.smtp_reply == reply


@pytest.mark.parametrize("kind", list(refusals()), ids=lambda kind: kind.__name__)
def test_a_temporary_condition_is_never_permanent_over_smtp_and_the_other_way_round(
    kind: type[errors.PostroadError],
) -> None:
    assert kind.smtp_reply.startswith("4" if kind.code in TEMPORARY else "5")
    basic, enhanced = kind.smtp_reply.split()
    assert basic[0] == enhanced[0]


def test_a_wrong_method_is_an_invalid_request_that_names_the_right_ones() -> None:
    error = errors.MethodNotAllowed("PUT is not supported by this path", allowed=("GET", "HEAD"))
    assert (error.code, error.status, error.allowed) == ("invalid_request", 405, ("GET", "HEAD"))


def test_a_mail_loop_is_an_invalid_request_with_a_reply_of_its_own() -> None:
    error = errors.MailLoop("Received: 100 fields")
    assert (error.code, error.status, error.smtp_reply) == ("invalid_request", 400, "554 5.4.6")


def test_a_refusal_carries_its_public_message() -> None:
    error = errors.Forbidden("from: example.org is not a domain of this account", retry_after=7)
    assert str(error) == error.message == "from: example.org is not a domain of this account"
    assert error.retry_after == 7


def test_a_key_in_progress_asks_to_wait_a_second() -> None:
    assert errors.IdempotencyInProgress("still running").retry_after == 1


def raised_calls() -> Iterator[tuple[str, int, ast.Call]]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text()
        # Parsing every file would take seconds.
        for node in ast.walk(ast.parse(text)) if any(name in text for name in ALWAYS_SAY_WHEN) else ():
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ALWAYS_SAY_WHEN
            ):
                yield path.name, node.lineno, node


def test_every_refusal_that_asks_to_wait_says_how_long() -> None:
    calls = list(raised_calls())
    assert calls
    silent = [
        f"{name}:{line}"
        for name, line, call in calls
        if not any(keyword.arg == "retry_after" for keyword in call.keywords)
    ]
    assert silent == []
