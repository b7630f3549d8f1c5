"""One scenario of scenarios.json, played: the server, the driver's answer, and what is wrong with it."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from clients.conformance import answers, requests, scenarios, server
from clients.conformance.driver import Driver, DriverLost

# A call that every client refuses before it makes a request, because the id is a path.
REFUSED_CALL: Final = {"operation": "get", "client": {"base_url": "http://127.0.0.1:9", "token": "x"}, "id": "../x"}


class Player:
    """Plays scenarios to one driver, one after the other. `agent` is the name in the client's `User-Agent`."""

    def __init__(self, driver: Driver, *, agent: str, files: Path) -> None:
        self._driver = driver
        self._agent = agent
        self._files = files
        self._keys: set[str] = set()

    async def play(self, given: scenarios.Scenario) -> list[str] | None:
        """What is wrong; None when this machine does not have what the scenario needs."""
        if given.request_steps != given.server:
            # The driver may take long to start, and the time in which connections are refused passes.
            await self._driver.ask(REFUSED_CALL)
        scripted = server.ScriptedServer()
        try:
            port = await scripted.open(given)
        except OSError:
            return None
        host = f"[{given.host}]" if ":" in given.host else given.host
        scenario = given.at({"base_url": f"http://{host}:{port}", "port": str(port), "files": str(self._files)})
        scripted.play(scenario.request_steps)
        began_at = time.monotonic()
        try:
            answer = await self._driver.ask(scenario.call)
        except DriverLost as problem:
            return [str(problem), *scripted.problems]
        finally:
            await scripted.close()
        seconds = time.monotonic() - began_at
        found = answers.problems(scenario, answer, scripted.requests)
        found += requests.problems(scenario, scripted.requests, agent=self._agent)
        if seconds > scenario.expect.get("within", seconds):
            found.append(f"expected an end within {scenario.expect['within']} seconds, came {seconds:.1f}")
        return found + scripted.problems + self._key_used_before(scenario, scripted)

    def _key_used_before(self, scenario: scenarios.Scenario, scripted: server.ScriptedServer) -> list[str]:
        """A key that a client makes is new with every call."""
        key = requests.made_key(scenario, scripted.requests)
        if key is None:
            return []
        is_old = key in self._keys
        self._keys.add(key)
        return [f"the key {key} was made for an earlier send already"] if is_old else []


async def play_all(
    drivers: Sequence[Driver], given: Iterable[scenarios.Scenario], *, agent: str, files: Path
) -> dict[str, list[str] | None]:
    """Each scenario by its name. They are mostly pauses, so several drivers of one client take turns."""
    rows: dict[str, list[str] | None] = {}
    waiting = iter(given)

    async def take_turns(driver: Driver) -> None:
        player = Player(driver, agent=agent, files=files)
        for scenario in waiting:
            rows[scenario.name] = await player.play(scenario)

    await asyncio.gather(*map(take_turns, drivers))
    return rows


async def try_vectors(driver: Driver) -> list[str]:
    """Every webhook vector, to the driver's verify; what is wrong."""
    found: list[str] = []
    for vector in scenarios.load_vectors():
        line = {name: vector[name] for name in ("body_base64", "header", "secret", "tolerance", "now")}
        try:
            answer = await driver.ask({"operation": "verify", **line})
        except DriverLost as problem:
            return [*found, f"{vector['name']}: {problem}"]
        if answer.get("result") is not vector["valid"]:
            found.append(f"{vector['name']}: expected {vector['valid']}, came {answer}")
    return found


async def try_events(driver: Driver) -> list[str]:
    """Every event, and every webhook vector, to the driver's parse_event; what is wrong."""
    found: list[str] = []
    for given in (*scenarios.load_vectors("events"), *map(_as_event, scenarios.load_vectors())):
        line = {name: given[name] for name in ("body_base64", "header", "secrets", "tolerance", "now")}
        try:
            answer = await driver.ask({"operation": "parse_event", **line})
        except DriverLost as problem:
            return [*found, f"{given['name']}: {problem}"]
        found += [f"{given['name']}: {what}" for what in answers.event_problems(given["expect"], answer)]
    return found


def _as_event(vector: dict[str, Any]) -> dict[str, Any]:
    """Whatever is in a body with a good signature, the signature is not what is wrong with it."""
    return {**vector, "secrets": [vector["secret"]], "expect": {} if vector["valid"] else {"error": "signature"}}
