"""Security cases H: templates that customers write, values that strangers wrote, and every listener that accepts them.

What is sent is looked at where it arrives. A template is text with names in it: whatever looks like the language of
another renderer is refused when it is saved, previewed or tried out, and what stands in a value is never read.
"""

import json
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Final, Protocol

import pytest

from postroad.services.templates import templates
from tests.security import tenants
from tests.security.tenants import Tenant
from tests.security.whole_service import WholeService

CODE: Final = "{{ 7*7 }}{{7*7}}${7*7}#{7*7}<%= 7*7 %>{% print(7*7) %}{{name}}{{other}}"
# What would be evaluated by one renderer or another.
ESCAPES: Final = (
    "{{ 7*7 }}",
    "{{ ''.__class__.__mro__ }}",
    "{{ x|attr('__init__') }}",
    "{% set f='{0.__class__}'.format %}",
    "{{ ''['__class__'] }}",
    "{{ x() }}",
    "{% for x in ().__class__.__base__.__subclasses__() %}{% endfor %}",
)
# What would read data of the service.
REACHES: Final = (
    '{{ env "DB_PASSWORD" }}',
    '{{ expandenv "$HOME" }}',
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% extends 'layout.html' %}",
    '{{template "x"}}',
    "{{#each this}}{{/each}}",
)
# Names of other templates, never of files: the template that uses one has to be there.
PARTS: Final = ("{{> partial}}", "{{> /etc/passwd}}", "{{> ../layout.html}}")
# Names like any other: there is nothing behind them.
NAMES: Final = (
    "config",
    "self",
    "request",
    "settings",
    "env",
    "__class__",
    "cycler.__init__.__globals__",
    "name.__class__",
    "_",
)
MARKUP: Final = '<script>alert(1)</script>" onload="x\' javascript:alert(2) & <b>'
ESCAPED: Final = "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&quot;x&#x27; javascript:alert(2) &amp; &lt;b&gt;"


async def put(service: WholeService, **parts: str | None) -> None:
    """Save the template `hello`."""
    usual: dict[str, str | None] = {"subject": "For {{name}}", "text": "Hi {{name}}!", "html": "<p>Hi {{name}}!</p>"}
    await templates.put(service.ctx, service.account.id, "hello", **{**usual, **parts})  # type: ignore[arg-type]


class Send(Protocol):
    """A way to send."""

    async def __call__(self, service: WholeService, /, **variables: object) -> None: ...


async def by_http(service: WholeService, **variables: object) -> None:
    answer = await service.post(template="hello", variables=variables, text=None, subject=None)
    assert answer.status_code == 202, answer.text


async def by_smtp(service: WholeService, **variables: object) -> None:
    fields = {
        "From": "Shop <shop@example.com>",
        "To": "ada@example.net",
        "X-Service-Template": "hello",
        "X-Service-Variables": json.dumps(variables),
    }
    content = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode() + b"\r\n"
    assert (await service.hand_in(content)).startswith("250 ")


async def got(service: WholeService) -> tuple[str, str, str]:
    """Subject, text and HTML of the one message, as it has arrived."""
    (arrived,) = await service.settled()
    parsed = message_from_bytes(arrived.taken.content, policy=policy.default)
    assert isinstance(parsed, EmailMessage)
    bodies = [parsed.get_body((kind,)) for kind in ("plain", "html")]
    text, html = (body.get_content().rstrip() if body is not None else "" for body in bodies)
    return str(parsed["Subject"]), text, html


@pytest.mark.parametrize("send", [by_http, by_smtp])
async def test_h1_what_stands_in_a_value_is_sent_as_it_stands(service: WholeService, send: Send) -> None:
    """H1: expressions of several languages, and our own placeholders, in a value: printed, and never read again."""
    await put(service, subject="For {{name}}{{other}}")
    await send(service, name=CODE, other="{{name}}")
    subject, text, html = await got(service)
    escaped = CODE.replace("<", "&lt;").replace(">", "&gt;")
    assert subject == f"For {CODE}{{{{name}}}}"
    assert (text, html) == (f"Hi {CODE}!", f"<p>Hi {escaped}!</p>")
    assert "49" not in subject + text + html


async def assert_refused(tenant: Tenant, source: str, *, part: str) -> None:
    """Nobody can save, preview or try out a template with this in it."""
    good = {"subject": "x", "text": "x", "html": "x"}
    answer = await tenant.ask("PUT", "/v1/templates/bad", json={**good, part: source})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), (source, answer.text)
    assert answer.json()["error"].startswith(f"{part}: ")
    form = {**good, part: source, "values": "{}", "csrf_token": tenant.csrf_token}
    answer = await tenant.browser.post("/templates", data={**form, "alias": "bad"})
    assert answer.status_code == 400, (source, answer.text)
    for path in (f"/templates/{tenant.mark}", f"/templates/{tenant.mark}/test"):
        answer = await tenant.browser.post(path, data=form)
        assert answer.status_code == 400, (path, source, answer.text)
    shown = await tenant.browser.post("/template/preview", data=form)
    assert "Mail with this template would be refused." in shown.text
    assert f" {part}: " in shown.text


@pytest.mark.parametrize("part", ["subject", "text", "html"])
async def test_h2_no_template_is_a_program(service: WholeService, part: str) -> None:
    """H2: ways out of the sandbox of a renderer, in each part of a template: refused, so there is no sandbox."""
    async with tenants.settled(service, "north") as north:
        before = await north.do("GET", "/v1/templates")
        for source in ESCAPES:
            await assert_refused(north, source, part=part)
        after = await north.do("GET", "/v1/templates")
        assert after["templates"] == before["templates"]


async def test_h3_no_template_reaches_anything_of_the_service(service: WholeService) -> None:
    """H3: files, the environment, settings; and names that mean something elsewhere are values that are missing."""
    async with tenants.settled(service, "north") as north:
        for source in REACHES:
            await assert_refused(north, source, part="text")
        for source in PARTS:
            answer = await north.ask("PUT", "/v1/templates/bad", json={"subject": "x", "text": source})
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), (source, answer.text)
        for name in NAMES:
            await north.do("PUT", "/v1/templates/odd", json={"subject": "x", "text": f"{{{{{name}}}}}"})
            answer = await north.ask("POST", "/v1/templates/odd/preview", json={"variables": {"name": "x"}})
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
            assert f"'{name}'" in answer.json()["error"]
            filled = await north.do("POST", "/v1/templates/odd/preview", json={"variables": {name: "my own"}})
            assert filled["text"] == "my own"


@pytest.mark.parametrize("send", [by_http, by_smtp])
async def test_h5_markup_in_a_value_is_text_in_every_part(service: WholeService, send: Send) -> None:
    """H5: escaped in HTML, also inside an attribute; as it is in the text and in the subject."""
    await put(service, html='<p title="{{name}}">{{name}}</p>')
    await send(service, name=MARKUP)
    assert await got(service) == (f"For {MARKUP}", f"Hi {MARKUP}!", f'<p title="{ESCAPED}">{ESCAPED}</p>')


async def test_h5_a_line_break_in_a_value_ends_no_subject(service: WholeService) -> None:
    """H5: CR, LF and their relatives make no header: the whole message is refused."""
    await put(service)
    for evil in ("\r\nBcc: eve@example.net", "\n", "\r", "\0", "\u2028", "\x85"):
        answer = await service.post(template="hello", variables={"name": f"Ada{evil}"}, text=None, subject=None)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert await service.settled() == []


async def test_h6_a_template_of_another_account_is_like_an_unknown_one(service: WholeService) -> None:
    """H6: to send with, over HTTP, over SMTP and as a test from the dashboard, and to preview."""
    async with tenants.settled(service, "north") as north, tenants.settled(service, "south") as south:
        sentences = []
        for alias in (south.mark, "nothing-here"):
            body = {
                "from": f"shop@{north.domain}",
                "to": "ada@example.net",
                "template": alias,
                "variables": {"name": "x"},
            }
            sent = await north.ask("POST", "/emails", json=body, headers={"Idempotency-Key": alias})
            assert sent.status_code in {400, 404}, sent.text
            seen = await north.ask("GET", f"/v1/templates/{alias}")
            shown = await north.ask("POST", f"/v1/templates/{alias}/preview", json={})
            page = await north.browser.get(f"/templates/{alias}")
            assert (seen.status_code, shown.status_code, page.status_code) == (404, 404, 404)
            for answer in (sent, seen, shown):
                tenants.assert_nothing_of(south, answer, asked=alias)
            reported = (f"X-Service-Template: {alias}\r\nX-Service-Variables: {{}}\r\n").encode()
            reply = await service.hand_in(b"From: shop@example.com\r\nTo: ada@example.net\r\n" + reported + b"\r\n")
            sentences.append([answer.json()["error"].replace(alias, "") for answer in (sent, seen, shown)] + [reply])
        assert sentences[0][:3] == sentences[1][:3]
        assert all(each[3].startswith("550 ") for each in sentences)
