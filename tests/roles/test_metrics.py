"""`/metrics` beside the API and, for processes without it, at an address of its own."""

import asyncio
from pathlib import Path

import httpx
import pytest

from postroad import config, roles
from tests import contexts
from tests.api import app_server
from tests.roles.test_supervisor import run, with_role


def settings(folder: Path, *, listen: str) -> config.Settings:
    return contexts.load(f"sqlite:///{folder}/postroad.db", http={"listen": "127.0.0.1:0"}, metrics={"listen": listen})


async def asked(
    names: list[str], chosen: config.Settings, monkeypatch: pytest.MonkeyPatch, *, where: str, path: str
) -> tuple[roles.Addresses, httpx.Response]:
    """Run these roles, and ask for a path at one of their addresses."""
    announced: list[roles.Addresses] = []
    answers: list[httpx.Response] = []

    async def work(role_context: roles.RoleContext) -> None:
        async with httpx.AsyncClient(base_url=f"http://{announced[0][where]}") as client:
            answers.append(await client.get(path))
        role_context.stopping.set()

    with_role(monkeypatch, work)
    await run(chosen, [*names, "test"], app_server.CapturedLog(), announce=announced.append)
    return announced[0], answers[0]


@pytest.mark.parametrize("path, status", [("/metrics", 200), ("/healthz", 200), ("/readyz", 200), ("/v1/account", 404)])
async def test_a_process_without_the_api_serves_them_and_nothing_else_at_an_address_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, status: int
) -> None:
    chosen = settings(tmp_path, listen="127.0.0.1:0")
    announced, answer = await asked(["maintenance"], chosen, monkeypatch, where="metrics", path=path)
    assert (list(announced), answer.status_code) == (["metrics"], status)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*announced["metrics"])


async def test_the_api_serves_what_the_whole_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announced, answer = await asked(["api"], settings(tmp_path, listen=""), monkeypatch, where="http", path="/metrics")
    assert (list(announced), answer.status_code) == (["http"], 200)
    assert "postroad_http_requests_total" in answer.text
