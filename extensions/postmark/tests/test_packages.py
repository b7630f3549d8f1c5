"""Postmark's own packages, unchanged: each of their methods works, or is told by name that it is not supported."""

import asyncio
import inspect
import itertools
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import postmarker.core
import pytest
import pytest_asyncio

from postroad import context
from postroad.model.bounces import disposition
from postroad.storage.people import accounts
from postroad_postmark import api
from tests import accepted_mail
from tests.compat import compat_client, method_table, package_runner
from tests.services import claimed_mail

NOT_SUPPORTED: Final = "Postroad does not support this part of the Postmark API"
EMAIL: Final = {"From": "shop@example.com", "To": "ada@example.net", "Subject": "Your order", "TextBody": "On its way"}
TEMPLATE: Final = {"Subject": "Hello {{user.name}}", "TextBody": "Hello {{user.name}}"}

# Postmark itself responds like this.
DECLARED_TOO_NARROWLY: Final = {
    "TotalCount is number and not string",
    *(f"Messages[{n}].To[0].Name is null and not string" for n in range(5)),
    "To[0].Name is null and not string",
    "Suppressions[0].Message is null and not string",
}
RUBY_GEM: Final = shutil.which("ruby") and [
    *Path("/usr/share/rubygems-integration/all/specifications").glob("postmark-*.gemspec")
]
RUBY_REMEDY: Final = "apt-get install ruby-postmark"
WEBHOOK: Final = {"Url": "https://app.example/hooks", "Triggers": {"Bounce": {"Enabled": True}}}


class Served:
    """A service, and what calls need from it."""

    def __init__(self, base_url: str, key: str, bounces: list[int]) -> None:
        self.base_url = base_url
        self.key = key
        self.client = httpx.Client(base_url=base_url, headers={"X-Postmark-Server-Token": key})
        self._numbers = itertools.count(1)
        self._bounces = iter(bounces)

    def filled(self, given: Any) -> Any:  # noqa: ANN401 - any JSON value
        """The arguments, with what `$name` stands for created."""
        if isinstance(given, list):
            return [self.filled(one) for one in given]
        if isinstance(given, dict):
            return {name: self.filled(one) for name, one in given.items()}
        makers: dict[str, Callable[[], Any]] = {
            "$message": lambda: self._made("/email", EMAIL, "MessageID"),
            "$template": lambda: self._made("/templates", TEMPLATE | {"Name": self._name()}, "Alias"),
            "$number": lambda: self._made("/templates", TEMPLATE | {"Name": self._name()}, "TemplateId"),
            "$domain": lambda: self._made("/domains", {"Name": f"{self._name()}.example"}, "ID"),
            "$webhook": lambda: self._made("/webhooks", WEBHOOK, "ID"),
            "$bounce": lambda: next(self._bounces),
        }
        return makers[given]() if given in makers else given

    def _name(self) -> str:
        return f"made-{next(self._numbers)}"

    def _made(self, path: str, body: dict[str, Any], member: str) -> Any:  # noqa: ANN401 - a number or a text
        response = self.client.post(path, json=body)
        assert response.is_success, response.text
        return response.json()[member]


@pytest_asyncio.fixture
async def served(ctx: context.Context, account: accounts.Account) -> AsyncIterator[Served]:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    numbers = []
    for name in ("b1", "b2", "b3"):
        _, (claimed,) = await claimed_mail.another(ctx, account.id, f"{name}@example.net")
        failed = claimed_mail.outcome(
            ctx,
            claimed,
            disposition.Verdict.BOUNCED,
            code=550,
            response="no such user",
            suppress=True,
            reason="unknown_address",
        )
        await ctx.outcome_commits.submit([failed])
        numbers.append(int(claimed.key[2][4:18], 16))
        ctx.clock.pass_seconds(1)  # type: ignore[attr-defined]
    async with compat_client.listening(ctx) as base_url:
        made = Served(base_url, key, numbers)
        yield made
        made.client.close()


def judged(package: method_table.Package, told: dict[str, str | None]) -> dict[str, str | None]:
    """The methods that are not as the table says, with what they were told; None is success."""
    return {
        method: message
        for method, message in told.items()
        if (message is not None if method in package.works else NOT_SUPPORTED not in (message or ""))
    }


async def test_every_method_of_the_node_package_is_in_the_table_and_as_it_says(served: Served) -> None:
    package = method_table.load()["`postmark` for Node.js"]
    calls = {name: await asyncio.to_thread(served.filled, given) for name, given in package.works.items()}
    calls |= {name: package.arguments.get(name) for name in sorted(package.unsupported)}
    host = f"{served.base_url.removeprefix('http://')}{api.API.prefix}"
    answer = await package_runner.run("node", "postmark_calls.mjs", {"host": host, "key": served.key, "calls": calls})
    assert set(answer["methods"]) == package.methods
    results = answer["results"]
    told = {name: result["error"]["message"] if "error" in result else None for name, result in results.items()}
    assert judged(package, told) == {}
    bounce = results["ServerClient.getBounce"]["data"]
    assert (bounce["Type"], bounce["Email"], bounce["Details"]) == ("HardBounce", "b1@example.net", "550 no such user")
    assert results["ServerClient.getBounces"]["data"]["TotalCount"] == 3
    assert results["ServerClient.activateBounce"]["data"]["Bounce"]["Inactive"] is False
    assert results["ServerClient.getDeliveryStatistics"]["data"]["Bounces"] == [{"Name": "All", "Count": 3}]
    validated = results["ServerClient.validateTemplate"]["data"]
    assert (validated["AllContentIsValid"], validated["Subject"]["RenderedContent"]) == (False, "Hello Ada")
    suppressed = results["ServerClient.getSuppressions"]["data"]["Suppressions"]
    assert [result["EmailAddress"] for result in suppressed] == ["b1@example.net", "b2@example.net"]
    returned = {name: result["data"] for name, result in results.items() if "data" in result}
    found = await package_runner.undeclared("postmark/dist/index.d.ts", returned)
    assert {problem for problems in found.values() for problem in problems} == DECLARED_TOO_NARROWLY


@pytest.mark.skipif(not RUBY_GEM, reason=f"the gem postmark is not installed: {RUBY_REMEDY}")
async def test_every_method_of_the_ruby_gem_is_in_the_table_and_as_it_says(served: Served) -> None:
    package = method_table.load()["`postmark` for Ruby"]
    calls = {name: await asyncio.to_thread(served.filled, given) for name, given in package.works.items()}
    calls |= {name: package.arguments.get(name) for name in sorted(package.unsupported)}
    host, _, port = served.base_url.removeprefix("http://").partition(":")
    place = {"host": host, "port": int(port), "path": f"{api.API.prefix}/", "key": served.key}
    answer = await package_runner.run("ruby", "postmark_calls.rb", {**place, "calls": calls})
    assert set(answer["methods"]) == package.methods
    results = answer["results"]
    told = {name: result["error"]["message"] if "error" in result else None for name, result in results.items()}
    assert judged(package, told) == {}
    # The gem puts Message-ID, Mime-Version and Content-Transfer-Encoding into the headers of each message.
    sent = results["ApiClient.deliver_message"]["data"]["message_id"]
    shown = (await asyncio.to_thread(served.client.get, f"/messages/outbound/{sent}/details")).json()
    assert (shown["TextBody"], shown["HtmlBody"], shown["Attachments"]) == (
        "On its way",
        "<p>On its way</p>",
        ["a.txt"],
    )
    assert f"Message-ID: <{sent}@example.com>" in shown["Body"]
    webhook = results["ApiClient.create_webhook"]["data"]["triggers"]
    assert (webhook["Bounce"]["Enabled"], webhook["SpamComplaint"]["Enabled"], webhook["Delivery"]["Enabled"]) == (
        True,
        True,
        False,
    )


def managers(owner: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The managers of the Python package, those below others too, by their place in the client."""
    for kind in getattr(owner, "_managers", ()):
        manager = getattr(owner, kind.name)
        yield f"{path}{kind.name}", manager
        yield from managers(manager, f"{path}{kind.name}.")


def python_methods(client: postmarker.core.PostmarkClient) -> dict[str, tuple[object, str]]:
    """The methods and properties of the managers, without what all of them inherit."""
    return {
        f"{path}.{name}": (manager, name)
        for path, manager in managers(client)
        for name, value in vars(type(manager)).items()
        if (inspect.isfunction(value) or isinstance(value, property)) and not name.startswith("_") and name != "call"
    }


@pytest.mark.filterwarnings("ignore:This method has been deprecated:DeprecationWarning")
async def test_every_method_of_the_python_package_is_in_the_table_and_as_it_says(served: Served) -> None:
    package = method_table.load()["`postmarker` for Python"]
    client = postmarker.core.PostmarkClient(
        server_token=served.key, account_token=served.key, root_api_url=f"{served.base_url}/"
    )
    methods = python_methods(client)
    assert set(methods) == package.methods

    def call(name: str) -> str | None:
        manager, attribute = methods[name]
        given = served.filled(package.works.get(name, []))
        try:
            method = getattr(manager, attribute)
            if not callable(method):
                return None
            if name in package.unsupported:
                needed = [
                    parameter
                    for parameter in inspect.signature(method).parameters.values()
                    if parameter.default is parameter.empty
                ]
                method(**{parameter.name: "x" for parameter in needed if parameter.kind is not parameter.VAR_KEYWORD})
            elif given and isinstance(given[0], dict):
                method(**given[0])
            else:
                method(*(given[0] if given else []))
        except postmarker.core.ClientError as problem:
            return str(problem)
        return None

    try:
        told = {name: await asyncio.to_thread(call, name) for name in sorted({*package.works, *package.unsupported})}
    finally:
        client.session.close()
    assert judged(package, told) == {}


async def test_django_anymail_sends_one_many_and_templates(served: Served) -> None:
    template = await asyncio.to_thread(served.filled, "$template")
    message = {"subject": "Your order", "body": "On its way", "from_email": "shop@example.com"}
    given = {
        "backend": "anymail.backends.postmark.EmailBackend",
        "anymail": {
            "POSTMARK_SERVER_TOKEN": served.key,
            "POSTMARK_API_URL": f"{served.base_url}{api.API.prefix}/",
            "POSTMARK_MESSAGE_STREAM": "broadcast",
        },
        "messages": [
            {
                "message": {**message, "to": ["Ada <ada@example.net>"], "cc": ["bob@example.net"]},
                "html": "<p>On its way</p>",
                "attachments": [["a.txt", "hi", "text/plain"]],
                "esp": {"tags": ["orders"], "metadata": {"order": "1042"}, "track_opens": True},
            },
            {
                "message": {**message, "to": ["ada@example.net", "bob@example.net"]},
                "esp": {"merge_metadata": {"ada@example.net": {"order": "1"}, "bob@example.net": {"order": "2"}}},
            },
            {
                "message": {"from_email": "shop@example.com", "to": ["ada@example.net"]},
                "esp": {"template_id": template, "merge_global_data": {"user": {"name": "Ada"}}},
            },
            {"message": {**message, "from_email": "shop@elsewhere.example", "to": ["ada@example.net"]}},
            {"message": {**message, "to": ["ada@example.net"], "headers": {"Message-ID": "<1@shop.example>"}}},
            {"message": {**message, "to": ["ada@example.net"]}, "esp": {"template_id": template}},
        ],
    }
    one, many, made, refused, identified, both = await package_runner.run(sys.executable, "anymail_calls.py", given)
    assert one["recipients"]["ada@example.net"][0] == "sent"
    message_id = one["recipients"]["bob@example.net"][1]
    shown = (await asyncio.to_thread(served.client.get, f"/messages/outbound/{message_id}/details")).json()
    assert (shown["Tag"], shown["Metadata"], shown["MessageStream"]) == ("orders", {"order": "1042"}, "broadcast")
    assert (shown["TextBody"], shown["HtmlBody"], shown["Attachments"]) == (
        "On its way",
        "<p>On its way</p>",
        ["a.txt"],
    )
    assert len({found[1] for found in many["recipients"].values()}) == 2
    message_id = made["recipients"]["ada@example.net"][1]
    shown = (await asyncio.to_thread(served.client.get, f"/messages/outbound/{message_id}/details")).json()
    assert shown["Subject"] == "Hello Ada"
    assert "elsewhere.example is not a domain of this account" in refused["error"]
    assert identified["recipients"]["ada@example.net"][0] == "sent"
    # Postmark's own number for it.
    assert '"ErrorCode": 1123' in both["error"]
    assert "TextBody: a template has the bodies of the message; leave TextBody and HtmlBody out" in both["error"]
