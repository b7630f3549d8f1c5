"""The scenarios of scenarios.json: names put in place of what they stand for, and defaults filled in."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clients.conformance import operations

HERE: Final = Path(__file__).parent
# What a call has of the defaults when it says nothing itself.
DEFAULT_MEMBER: Final = {"send": "email", "get": "id", "wait": "id"}
# The operation of a driver that calls any method of the library, with plain values.
CALL: Final = "call"
# A step that is about the port, and not about a request.
REFUSE_FOR: Final = "refuse_connections_for"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A call, what the server does, and what must come of it. Places such as `{base_url}` are still to be filled in."""

    name: str
    host: str
    call: dict[str, Any]
    server: list[dict[str, Any]]
    expect: dict[str, Any]

    @property
    def request_steps(self) -> list[dict[str, Any]]:
        """The steps that are about requests."""
        return [step for step in self.server if REFUSE_FOR not in step]

    def at(self, places: Mapping[str, str]) -> "Scenario":
        """The scenario with the places filled in."""
        filled = _filled([self.call, self.server, self.expect], places)
        return Scenario(self.name, self.host, *filled)


@dataclass(frozen=True, slots=True)
class Suite:
    """All scenarios, and the files that they send."""

    scenarios: list[Scenario]
    files: dict[str, bytes]

    def write_files(self, folder: Path) -> None:
        """Put the files where drivers can read them."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


def load(path: Path = HERE / "scenarios.json") -> Suite:
    """Read the scenarios."""
    document = json.loads(path.read_text(encoding="utf-8"))
    scenarios = [_scenario(given, document) for given in (*document["scenarios"], *operations.scenarios())]
    return Suite(scenarios, {name: base64.b64decode(content) for name, content in document["files"].items()})


def load_vectors(member: str = "vectors", path: Path = HERE / "webhook-signatures.json") -> list[dict[str, Any]]:
    """Read the webhook vectors: `vectors` are about signatures, `events` about what is in a body."""
    vectors: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))[member]
    return vectors


def _scenario(given: dict[str, Any], document: dict[str, Any]) -> Scenario:
    bodies, defaults = document["bodies"], document["defaults"]
    call, expect = dict(given["call"]), dict(given["expect"])
    client = {"base_url": "{base_url}", **defaults["client"], **call.get("client", {})}
    call["client"] = {name: value for name, value in client.items() if value is not None}
    if call["operation"] in DEFAULT_MEMBER:
        member = DEFAULT_MEMBER[call["operation"]]
        call.setdefault(member, defaults[member])
    steps = [{**step, "json": _body(step["json"], bodies)} if "json" in step else step for step in given["server"]]
    if "result" in expect and call["operation"] != CALL:
        expect["result"] = _body(expect["result"], bodies)
    return Scenario(given["name"], given.get("host", "127.0.0.1"), call, steps, expect)


def _body(value: object, bodies: dict[str, Any]) -> object:
    """A name stands for one of the bodies; anything else for itself."""
    return bodies[value] if isinstance(value, str) else value


def _filled(value: Any, places: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        for name, text in places.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, list):
        return [_filled(each, places) for each in value]
    if isinstance(value, dict):
        return {name: _filled(each, places) for name, each in value.items()}
    return value
