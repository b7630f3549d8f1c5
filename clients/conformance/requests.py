"""What the server was asked, held against what a scenario expects and against what holds for every request.

Always: the right path and method, one `Authorization` made of the credential, the client's own `User-Agent`, JSON, a
key for each send and none for get; and in every attempt of a call the same key and the same bytes.
"""

import base64
import json
import re
from typing import Any, Final
from urllib import parse

from clients.conformance import answers, scenarios, wire

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# Timers may fire a little early, and clocks tick in steps.
EARLY_SECONDS: Final = 0.02
# A back-off is at most twice its least, and a busy machine is late.
LATE_SECONDS: Final = 30.0
LISTS: Final = ("to", "cc", "bcc", "tags")
ONCE: Final = ("authorization", "host", "user-agent")


def problems(scenario: scenarios.Scenario, requests: list[wire.Request], *, agent: str) -> list[str]:
    """What is wrong with the requests of a scenario; nothing when all is well."""
    found = []
    expected = scenario.expect.get("requests", 0)
    least, most = expected if isinstance(expected, list) else (expected, expected)
    if not least <= len(requests) <= most:
        wanted = f"{least} to {most}" if least != most else least
        found.append(f"expected {wanted} requests, came {len(requests)}")
    if "paths" in scenario.expect and scenario.expect["paths"] != [request.path for request in requests]:
        found.append(f"expected {scenario.expect['paths']}, came {[request.path for request in requests]}")
    for number, request in enumerate(requests, start=1):
        wrong = _always(scenario.call, request, agent=agent) + _expected(scenario.expect.get("request", {}), request)
        found += [f"request {number}: {what}" for what in wrong]
    if len({request.value("idempotency-key") for request in requests}) > 1:
        found.append(f"the key changed: {[request.value('idempotency-key') for request in requests]}")
    if len({request.body for request in requests}) > 1:
        found.append("the bytes of the body changed from one attempt to the next")
    return found + _pauses(scenario.expect.get("pauses", []), requests)


def made_key(scenario: scenarios.Scenario, requests: list[wire.Request]) -> str | None:
    """The key that the client made, if it had to make one and did."""
    given = scenario.call["operation"] != "send" or "idempotency_key" in scenario.call
    return None if given or not requests else requests[0].value("idempotency-key")


def _always(call: dict[str, Any], request: wire.Request, *, agent: str) -> list[str]:
    is_send, is_call = call["operation"] == "send", call["operation"] == scenarios.CALL
    base = parse.urlsplit(call["client"]["base_url"]).path.rstrip("/")
    wanted = {
        "method": "POST" if is_send else "GET",
        "path": f"{base}/emails" if is_send else f"{base}/emails/{call.get('id')}",
        "authorization": _authorization(call["client"]),
    }
    if is_call:
        wanted = {"authorization": wanted["authorization"]}
    came = {"method": request.method, "path": request.path, "authorization": request.value("authorization")}
    found = [f"{name}: expected {wanted[name]}, came {came[name]}" for name in wanted if wanted[name] != came[name]]
    found += [f"{name} came {len(request.values(name))} times" for name in ONCE if len(request.values(name)) != 1]
    if not re.fullmatch(rf"{re.escape(agent)}/\d+\.\d+\.\d+", request.value("user-agent") or ""):
        found.append(f"user-agent: expected {agent}/<version>, came {request.value('user-agent')}")
    if is_call:
        return found
    return found + (_sent(call, request) if is_send else _asked(request))


def _authorization(client: dict[str, Any]) -> str:
    if "token" in client:
        return f"Bearer {client['token']}"
    return "Basic " + base64.b64encode(f"{client['username']}:{client['password']}".encode()).decode()


def _sent(call: dict[str, Any], request: wire.Request) -> list[str]:
    found = []
    keys, given = request.values("idempotency-key"), call.get("idempotency_key")
    if len(keys) != 1 or (keys != [given] if given else not UUID.fullmatch(keys[0])):
        found.append(f"idempotency-key: expected {given or 'a UUID'}, came {keys}")
    if (request.value("content-type") or "").partition(";")[0] != "application/json":
        found.append(f"content-type: expected application/json, came {request.value('content-type')}")
    return found


def _asked(request: wire.Request) -> list[str]:
    found = [f"{name} in a get" for name in ("idempotency-key", "content-type") if request.values(name)]
    return [*found, "a body in a get"] if request.body else found


def _expected(expected: dict[str, Any], request: wire.Request) -> list[str]:
    came = {"method": request.method, "path": request.path}
    found = [
        f"{name}: expected {expected[name]}, came {came[name]}"
        for name in came
        if name in expected and expected[name] != came[name]
    ]
    for name, value in expected.get("headers", {}).items():
        if request.values(name) != [value]:
            found.append(f"{name}: expected {value}, came {request.values(name)}")
    if "body" in expected and expected["body"] is None:
        found += ["expected no body"] if request.body else []
    elif "body" in expected:
        found += _body(expected["body"], request.body)
    return found


def _body(expected: dict[str, Any], raw: bytes) -> list[str]:
    try:
        came = json.loads(raw)
    except ValueError:
        return [f"the body is no JSON: {raw[:200]!r}"]
    if not isinstance(came, dict):
        return [f"the body is no object: {raw[:200]!r}"]
    # One string and a list of one mean the same, and languages have their ways.
    came = {name: [value] if name in LISTS and isinstance(value, str) else value for name, value in came.items()}
    more = [f"body.{name}: expected nothing, came {came[name]!r}" for name in came if name not in expected]
    return more + [line for name in expected for line in _exactly(f"body.{name}", expected[name], came.get(name))]


def _exactly(place: str, expected: object, came: object) -> list[str]:
    """As `answers.differences`, but what is empty has to be empty in the same way."""
    found = answers.differences(place, expected, came)
    if not found and json.dumps(expected, sort_keys=True) != json.dumps(came, sort_keys=True):
        found.append(f"{place}: expected {expected!r}, came {came!r}")
    return found


def _pauses(expected: list[float], requests: list[wire.Request]) -> list[str]:
    found = []
    for number, (least, before, after) in enumerate(zip(expected, requests, requests[1:], strict=False), start=1):
        came = after.began_at - (before.answered_at or after.began_at)
        if not least - EARLY_SECONDS <= came <= 2 * least + LATE_SECONDS:
            found.append(
                f"before retry {number}: expected a pause of {least} seconds or a little more, came {came:.3f}"
            )
    return found
