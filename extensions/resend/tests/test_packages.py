"""Resend's own packages, unchanged: each of their methods works, or is told by name that it is not supported."""

import asyncio
import functools
import inspect
import itertools
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio
import resend
import trustme

from postroad import config, context
from postroad.api.v1 import inbound
from postroad.services.webhooks import signed_requests
from postroad.storage.people import accounts
from postroad_resend import api, event_format
from tests import accepted_mail, received_rows
from tests.api import app_server
from tests.compat import compat_client, method_table, package_runner

TEMPLATE: Final = {"subject": "Hello", "html": "<p>Hello</p>"}
EMAIL: Final = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Your order", "text": "On its way"}
WEBHOOK: Final = {"endpoint": "https://8.8.8.8/hooks", "events": ["email.sent"]}
NOT_SUPPORTED: Final = "Postroad does not support this part of the Resend API"


# There are no regions here; Resend itself lists errors of a batch only where it was asked to accept a part of it.
UNDECLARED: Final = {'region is "self-hosted"', "errors is missing"}


class Anything(dict[str, Any]):
    """Arguments of a call that is refused anyway."""

    def __missing__(self, name: str) -> str:
        return "x"


class Served:
    """A service, and what calls need from it."""

    def __init__(self, base_url: str, key: str, received_id: str) -> None:
        self.base_url = f"{base_url}{api.API.prefix}"
        self.key = key
        self.received_id = received_id
        self.client = httpx.Client(base_url=self.base_url, headers={"Authorization": f"Bearer {key}"})
        self._numbers = itertools.count(1)

    def close(self) -> None:
        self.client.close()

    def filled(self, given: Any) -> Any:  # noqa: ANN401 - any JSON value
        """The arguments, with what `$name` stands for created."""
        if isinstance(given, list):
            return [self.filled(one) for one in given]
        if isinstance(given, dict):
            return {name: self.filled(one) for name, one in given.items()}
        makers: dict[str, Callable[[], Any]] = {
            "$new": lambda: f"new-{next(self._numbers)}",
            "$message": lambda: self._made("/emails", EMAIL),
            "$scheduled": lambda: self._made("/emails", {**EMAIL, "scheduled_at": "in 1 hour"}),
            "$template": lambda: self._made("/templates", {**TEMPLATE, "name": f"made-{next(self._numbers)}"}),
            "$new_domain": lambda: f"new-{next(self._numbers)}.example",
            "$domain": lambda: self._made("/domains", {"name": f"made-{next(self._numbers)}.example"}),
            "$key": lambda: self._made("/api-keys", {"name": "made", "permission": "sending_access"}),
            "$webhook": lambda: self._made("/webhooks", WEBHOOK),
            "$signed": signed,
            "$told": lambda: self.told[0],
            "$event": lambda: self.told[1],
            "$received": lambda: self.received_id,
            "$received_file": lambda: f"{self.received_id}_1",
            "$suppressed": lambda: self._made("/suppressions", {"email": f"made-{next(self._numbers)}@example.net"}),
        }
        return makers[given]() if given in makers else given

    @functools.cached_property
    def told(self) -> tuple[str, str]:
        """A webhook and an event of it."""
        webhook = self._made("/webhooks", WEBHOOK)
        self._made("/emails", EMAIL)
        return webhook, self.client.get(f"/webhooks/{webhook}/events").json()["data"][0]["id"]

    def _made(self, path: str, body: dict[str, Any]) -> str:
        response = self.client.post(path, json=body)
        assert response.is_success, response.text
        return str(response.json()["id"])


def signed() -> dict[str, Any]:
    """An event as a request of a webhook has it, for either package."""
    secret, body = signed_requests.new_secret(), b'{"type":"email.sent"}'
    sent = event_format.sign([secret], body, "evt_1", int(time.time()))
    headers = {name.removeprefix("svix-"): value for name, value in sent}
    return {"payload": body.decode(), "headers": headers, "webhookSecret": secret, "webhook_secret": secret}


@pytest_asyncio.fixture
async def served(
    ctx: context.Context, account: accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Served]:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    received = await received_rows.put(ctx, account.id)
    # Links to received mail are those of our own API.
    async with compat_client.listening(ctx) as base_url, app_server.running(inbound.ROUTES, context=ctx) as own:
        monkeypatch.setattr(config, "base_url", lambda _: own.base_url)
        made = Served(base_url, key, received.id)
        yield made
        made.close()


def judged(package: method_table.Package, told: dict[str, str | None]) -> dict[str, str | None]:
    """The methods that are not as the table says, with what they were told; None is success."""
    return {
        method: message
        for method, message in told.items()
        if (message is not None if method in package.works else NOT_SUPPORTED not in (message or ""))
    }


def python_methods() -> dict[str, Callable[..., Any]]:
    """The methods of the Python package, those with `_async` too."""
    return {
        f"{name}.{method}": getattr(kind, method)
        for name, kind in vars(resend).items()
        if inspect.isclass(kind)
        for method, value in vars(kind).items()
        if isinstance(value, classmethod | staticmethod) and not method.startswith("_")
    }


def anything(method: Callable[..., object]) -> list[Any]:
    """Arguments for all parameters that need one."""
    needed = [
        parameter for parameter in inspect.signature(method).parameters.values() if parameter.default is parameter.empty
    ]
    return ["x" if parameter.annotation is str else Anything(id="x", contact_id="x") for parameter in needed]


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
async def test_every_method_of_the_python_package_is_in_the_table_and_as_it_says(
    served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The methods with `_async` read the authorities of the system each time, which takes longer than all they do.
    trustme.CA().cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    package = method_table.load()["`resend` for Python"]
    methods = python_methods()
    assert {name.removesuffix("_async") for name in methods} == package.methods
    monkeypatch.setattr(resend, "api_url", served.base_url)
    monkeypatch.setattr(resend, "api_key", served.key)

    def call(name: str) -> tuple[str | None, Any]:
        """What it is told; a method with `_async` is only begun."""
        base = name.removesuffix("_async")
        given = served.filled(package.works.get(base) or package.arguments.get(base)) or anything(methods[name])
        try:
            return None, methods[name](*given)
        except (resend.exceptions.ResendError, ValueError) as problem:
            return str(problem), None

    told: dict[str, str | None] = {}
    # Of those with `_async`, the ones that work: the others are the same requests.
    asynchronous = {f"{name}_async" for name in package.works}
    for name in sorted({*package.works, *package.unsupported, *asynchronous}):
        message, made = await asyncio.to_thread(call, name)
        if inspect.isawaitable(made):
            try:
                await made
            except (resend.exceptions.ResendError, ValueError) as problem:
                message = str(problem)
        told[name] = message
    wrong = judged(package, {name: message for name, message in told.items() if not name.endswith("_async")})
    beside = {name.removesuffix("_async"): message for name, message in told.items() if name.endswith("_async")}
    assert (wrong, judged(package, beside)) == ({}, {})


async def test_every_method_of_the_node_package_is_in_the_table_and_as_it_says(
    served: Served,
) -> None:
    package = method_table.load()["`resend` for Node.js"]
    calls = {name: await asyncio.to_thread(served.filled, given) for name, given in package.works.items()}
    calls |= {name: package.arguments.get(name) for name in sorted(package.unsupported)}
    answer = await package_runner.run(
        "node", "resend_calls.mjs", {"baseUrl": served.base_url, "key": served.key, "calls": calls}
    )
    assert set(answer["methods"]) == package.methods
    told = {
        name: result["error"]["message"] if result.get("error") else None for name, result in answer["results"].items()
    }
    assert judged(package, told) == {}
    returned = {f"Resend.{name}": result for name, result in answer["results"].items() if "data" in result}
    found = await package_runner.undeclared("resend/dist/index.d.mts", returned)
    assert {problem.rpartition(".")[2] for problems in found.values() for problem in problems} == UNDECLARED
    sent = answer["results"]["emails.create"]["data"]["id"]
    shown = (await asyncio.to_thread(served.client.get, f"/emails/{sent}")).json()
    assert "<p>On its way</p>" in shown["html"]
    assert shown["last_event"] == "queued"


async def test_django_anymail_sends_one_and_many(served: Served) -> None:
    message = {"subject": "Your order", "body": "On its way", "from_email": "shop@example.com"}
    given = {
        "backend": "anymail.backends.resend.EmailBackend",
        "anymail": {"RESEND_API_KEY": served.key, "RESEND_API_URL": served.base_url},
        "messages": [
            {
                "message": {
                    **message,
                    "to": ["ada@example.net"],
                    "cc": ["bob@example.net"],
                    "reply_to": ["a@b.example"],
                },
                "html": "<p>On its way</p>",
                "attachments": [["a.txt", "hi", "text/plain"]],
                "esp": {"tags": ["orders"], "metadata": {"order": "1042"}},
            },
            {
                "message": {**message, "to": ["ada@example.net", "bob@example.net"]},
                "esp": {"merge_metadata": {"ada@example.net": {"order": "1"}, "bob@example.net": {"order": "2"}}},
            },
            {"message": {**message, "from_email": "shop@elsewhere.example", "to": ["ada@example.net"]}},
            {"message": {**message, "to": ["ada@example.net"], "headers": {"Message-ID": "<1@shop.example>"}}},
        ],
    }
    one, many, refused, identified = await package_runner.run(sys.executable, "anymail_calls.py", given)
    assert list(one["recipients"]) == ["ada@example.net", "bob@example.net"]
    message_id = one["recipients"]["ada@example.net"][1]
    assert one["recipients"]["ada@example.net"][0] == "queued"
    shown = (await asyncio.to_thread(served.client.get, f"/emails/{message_id}")).json()
    assert (shown["cc"], shown["reply_to"], shown["html"]) == (
        ["bob@example.net"],
        ["a@b.example"],
        "<p>On its way</p>",
    )
    assert len({found[1] for found in many["recipients"].values()}) == 2
    assert "elsewhere.example is not a domain of this account" in refused["error"]
    assert identified["recipients"]["ada@example.net"][0] == "queued"
