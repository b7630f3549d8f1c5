"""What a driver answered, held against what a scenario expects and against what holds for every error."""

import datetime as dt
import json
from http import HTTPStatus
from typing import Any, Final

from clients.conformance import scenarios, wire

TIMES: Final = frozenset({"created_at", "delivered_at", "bounced_at"})
RETRYABLE_STATUSES: Final = (408, 429, 500, 502, 503, 504)
RETRYABLE_CODES: Final = ("idempotency_in_progress", "connection_failed", "timed_out")
# Enough of a value to recognise it.
SHORT: Final = 400
OUTCOMES: Final = ("result", "error", "refused")
# The kinds of errors with these statuses; the others follow from the class of the status.
KINDS: Final = {
    401: "authentication",
    402: "insufficient_credits",
    403: "permission_denied",
    404: "not_found",
    409: "idempotency",
    429: "rate_limited",
}


def problems(scenario: scenarios.Scenario, answer: dict[str, Any], requests: list[wire.Request]) -> list[str]:
    """What is wrong with an answer; nothing when all is well."""
    expected = next((outcome for outcome in OUTCOMES if outcome in scenario.expect), "result")
    found = _leaked_secrets(scenario, answer)
    if expected not in answer:
        return [*found, f"expected {expected} {_short(scenario.expect.get(expected))}, came {_short(answer)}"]
    if "result" in scenario.expect:
        found += differences("result", scenario.expect["result"], answer["result"])
    elif expected == "error":
        found += _error(scenario, answer["error"], requests)
    return found


def differences(place: str, expected: object, came: object) -> list[str]:
    """Where what came lacks or differs; members that were not asked for are left alone."""
    if is_empty(expected):
        return [] if is_empty(came) else [f"{place}: expected nothing, came {_short(came)}"]
    if isinstance(expected, dict) and isinstance(came, dict):
        return [
            line for name, value in expected.items() for line in differences(f"{place}.{name}", value, came.get(name))
        ]
    if isinstance(expected, list) and isinstance(came, list) and len(expected) == len(came):
        pairs = enumerate(zip(expected, came, strict=True))
        return [line for number, pair in pairs for line in differences(f"{place}[{number}]", *pair)]
    same = _instant(expected) == _instant(came) if place.rpartition(".")[2] in TIMES else expected == came
    # To JSON, true and 1 are different things.
    if same and isinstance(expected, bool) == isinstance(came, bool):
        return []
    return [f"{place}: expected {_short(expected)}, came {_short(came)}"]


def event_problems(expected: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """What is wrong with the answer to a parse_event. Without an expectation, only the signature must not be."""
    came = (answer.get("error") or {}).get("kind")
    if "event" in expected:
        return differences("result", expected["event"], answer.get("result"))
    if "refused" in expected:
        return [] if "refused" in answer else [f"expected that it is refused, came {_short(answer)}"]
    if "error" in expected:
        return differences("error.kind", expected["error"], came)
    return [] if came is None else [f"expected that the signature is good, came {_short(answer)}"]


def is_empty(value: object) -> bool:
    """Whether a value is one of the ways of languages to say that there is nothing; false says something."""
    return not value and value is not False


def _instant(value: object) -> object:
    """A time as a moment, whatever its zone and its number of digits; what is no RFC 3339 stays as it is."""
    try:
        moment = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return value
    return moment if moment.tzinfo is not None else value


def _error(scenario: scenarios.Scenario, error: dict[str, Any], requests: list[wire.Request]) -> list[str]:
    expected = dict(scenario.expect["error"])
    has, lacks = expected.pop("message_has", None), expected.pop("message_lacks", None)
    found = differences("error", expected, error)
    message = str(error.get("message") or "")
    texts = [has] if has else []
    steps = scenario.request_steps
    last = steps[min(len(requests), len(steps)) - 1].get("json") if requests else None
    if isinstance(last, dict) and isinstance(last.get("code"), str):
        texts += [last["error"], last["code"]]
    found += [
        f"error.message: expected {_short(text)} in it, came {_short(message)}" for text in texts if text not in message
    ]
    if not message or (lacks and lacks in message):
        found.append(f"error.message: too little or too much is in it: {_short(message)}")
    return found + _helpers(error) + _key(scenario, error, requests)


def _helpers(error: dict[str, Any]) -> list[str]:
    """The kind and the helpers follow from status and code, whatever the scenario is about."""
    status, code = error.get("status"), error.get("code")
    expected = {
        "kind": kind(status, code),
        "is_retryable": status in RETRYABLE_STATUSES or code in RETRYABLE_CODES,
        "is_insufficient_credits": code == "insufficient_credits",
        "is_idempotency_conflict": code == "idempotency_conflict",
    }
    return [
        f"error.{name}: expected {value} for {status} {code}, came {_short(error.get(name))}"
        for name, value in expected.items()
        if json.dumps(error.get(name)) != json.dumps(value)
    ]


def kind(status: int | None, code: object) -> str:
    """The name of an error's class, without `Error`."""
    if code == "insufficient_credits":
        return "insufficient_credits"
    if not status:
        return str(code)
    if status < HTTPStatus.BAD_REQUEST:
        return "unexpected_response"
    return KINDS.get(status, "invalid_request" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server")


def _key(scenario: scenarios.Scenario, error: dict[str, Any], requests: list[wire.Request]) -> list[str]:
    """The error of a send has the key that was sent; that of a get or a wait has none."""
    came, operation = error.get("idempotency_key"), scenario.call["operation"]
    if operation != "send":
        return [] if is_empty(came) else [f"error.idempotency_key: expected none for {operation}, came {_short(came)}"]
    sent = requests[-1].value("idempotency-key") if requests else scenario.call.get("idempotency_key", came)
    if came and came == sent:
        return []
    return [f"error.idempotency_key: expected {_short(sent or 'the one that was made')}, came {_short(came)}"]


def _leaked_secrets(scenario: scenarios.Scenario, answer: dict[str, Any]) -> list[str]:
    """Nothing that a client says about a call may hold the credential."""
    client = scenario.call["client"]
    said = json.dumps(answer, ensure_ascii=False)
    secrets = [client[name] for name in ("token", "password") if client.get(name)]
    if "hidden-word" in client["base_url"]:
        secrets.append("hidden-word")
    # As JSON writes it: some of them hold line breaks.
    written = [json.dumps(secret, ensure_ascii=False)[1:-1] for secret in secrets]
    return [f"the answer contains a secret: {_short(answer)}" for secret in written if secret in said]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"
