"""`postroad import`, against the responses that the services' documentation shows."""

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from postroad import context
from postroad.network.http import json_api
from postroad.services.accounts import account_registry
from postroad.services.imports import importer
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.services.webhooks import endpoints, signed_requests
from postroad.storage.mail import templates as stored_templates
from postroad_postmark import importer as postmark
from tests import vendor_responses, vendor_server
from tests.cli import cli_runner
from tests.cli.cli_runner import Installation

LOOPBACK = "url: 127.0.0.1 is a loopback address; webhooks are sent to public addresses only"
KEY = "re_c1tpEyD8_NKFusih9vKVQknRAQfmFcWCv"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESEND_API_KEY", KEY)
    monkeypatch.setenv("POSTMARK_SERVER_TOKEN", KEY)
    monkeypatch.delenv("POSTMARK_ACCOUNT_TOKEN", raising=False)


@pytest.fixture
def resend() -> Iterator[vendor_server.Vendor]:
    with vendor_server.running(dict(vendor_responses.RESEND)) as vendor:
        yield vendor


@pytest.fixture
def postmark_server() -> Iterator[vendor_server.Vendor]:
    with vendor_server.running(dict(vendor_responses.POSTMARK)) as vendor:
        yield vendor


def _failed(installation: Installation, *words: str) -> str:
    result = installation.run(*words)
    assert result.exit_code == 1
    assert KEY not in result.output
    return result.stdout


async def _template(ctx: context.Context, alias: str) -> stored_templates.Template:
    (account,) = await account_registry.page(ctx, "", 2)
    return await templates.find(ctx, account.id, alias)


async def _webhooks(ctx: context.Context) -> list[tuple[str, str, int, Sequence[tuple[str, str]]]]:
    """The endpoints of the only account: format, its events, whether it is enabled, and its header fields."""
    (account,) = await account_registry.page(ctx, "", 2)
    return [
        (
            webhook.format,
            webhook.format_events,
            webhook.enabled,
            signed_requests.decrypt_headers(ctx, webhook),
        )
        for webhook in await endpoints.of_account(ctx, account.id)
    ]


def test_an_account_of_resend_is_created_here(installation: Installation, resend: vendor_server.Vendor) -> None:
    report = installation.json("import", "resend", "--url", resend.url)
    assert {header["Authorization"] for header in resend.headers} == {f"Bearer {KEY}"}
    (domain,) = report["domains"]["created"]
    assert domain["name"] == "example.com"
    assert {one["purpose"] for one in domain["records"]} >= {"dkim", "spf", "return_path", "dmarc"}
    assert report["templates"] == {
        "created": [
            {
                "name": "reset-password",
                "notes": [
                    "values are HTML-escaped in the HTML body",
                    "its from and reply_to are not stored; pass them with every message",
                    "fallback values are not stored; always pass NAME",
                    "it has unpublished changes at Resend",
                ],
            },
            {
                "name": "b7f9c2e1-1234-4abc-9def-567890abcdef",
                "notes": [
                    "it has no alias; 'welcome' is stored under its id",
                    "it has no subject; its name is used where a message gives none",
                ],
            },
        ],
        "existing": [],
        "refused": [
            {
                "name": "digest",
                "notes": [
                    (
                        "html: '{{#each ITEMS}}': sections are not imported, because names in them mean something "
                        "else here; rewrite them in Postroad"
                    )
                ],
            }
        ],
        "stopped": "",
    }
    assert report["suppressions"]["created"] == 2
    assert [one["name"] for one in report["suppressions"]["refusals"]] == ["not an address"]
    (webhook,) = report["webhooks"]["created"]
    assert webhook["name"] == "https://first-endpoint.example.com/webhook"
    assert webhook["secret"].startswith("whsec_")
    assert webhook["notes"] == [
        "disabled; if your application verifies signatures, store the secret there, then enable the webhook",
        "events that do not exist here: email.opened",
    ]
    assert installation.ask(_webhooks) == [("resend", "email.sent", 0, [])]
    assert report["webhooks"]["refused"] == [
        {"name": "https://127.0.0.1/webhook", "notes": [LOOPBACK]},
        {"name": "https://opens.example.com/", "notes": ["none of its events exist here: email.opened"]},
    ]
    assert report["complete"] is True
    stored = installation.json("suppression", "list")["suppressions"]
    assert [(one["email"], one["source"], one["reason"], one["created_at"]) for one in stored] == [
        ("steve.wozniak@example.com", "import", "imported from Resend: manual", "2026-10-06T23:47:56.678Z"),
        ("susan.kare@example.com", "bounce", "imported from Resend: bounce", "2026-10-07T08:12:03.412Z"),
    ]
    template = installation.ask(lambda ctx: _template(ctx, "reset-password"))
    assert (template.subject, template.text, template.html) == (
        "Hello, {{NAME}}",
        "Hi {{NAME}}",
        "<p>Hi {{NAME}}</p>",
    )


def test_an_import_again_changes_nothing(installation: Installation, resend: vendor_server.Vendor) -> None:
    installation.text("import", "resend", "--url", resend.url)
    before = installation.json("audit-log")
    report = installation.json("import", "resend", "--url", resend.url)
    kinds = ("domains", "templates", "webhooks")
    assert [(len(report[kind]["created"]), len(report[kind]["existing"])) for kind in kinds] == [(0, 1), (0, 2), (0, 1)]
    assert (report["suppressions"]["created"], report["suppressions"]["existing"]) == (0, 2)
    assert installation.json("audit-log") == before


def test_a_template_that_was_changed_here_is_kept(installation: Installation, resend: vendor_server.Vendor) -> None:
    installation.text("template", "put", "reset-password", "--subject", "Ours", "--text", "Ours")
    report = installation.json("import", "resend", "--url", resend.url)
    assert report["templates"]["existing"] == [
        {"name": "reset-password", "notes": ["the template here differs and was not changed"]}
    ]
    assert [one["subject"] for one in installation.json("template", "list")["templates"]][1] == "Ours"


def test_a_dry_run_writes_nothing(installation: Installation, resend: vendor_server.Vendor) -> None:
    before = installation.json("audit-log")
    said = installation.text("import", "resend", "--url", resend.url, "--dry-run").splitlines()
    assert said[:3] == [
        "Dry run: nothing was created.",
        "Domains: 1 to create, 0 already exist, 0 not imported.",
        "  example.com: to create",
    ]
    assert "Suppressions: 2 to create, 0 already exist, 1 not imported." in said
    assert installation.json("audit-log") == before
    assert installation.json("domain", "list") == {"domains": []}
    assert installation.json("suppression", "list")["suppressions"] == []


def test_the_text_has_the_records_and_the_secret(installation: Installation, resend: vendor_server.Vendor) -> None:
    said = installation.text("import", "resend", "--url", resend.url)
    assert "_domainkey.example.com. IN TXT" in said
    assert "    secret:  whsec_" in said
    assert said.count("Shown only once") == 1
    assert KEY not in said


def test_a_server_of_postmark_is_created_here(
    installation: Installation,
    postmark_server: vendor_server.Vendor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "account").write_text("account-token\n")
    report = installation.json(
        "import", "postmark", "--url", postmark_server.url, "--account-key-file", str(tmp_path / "account")
    )
    assert postmark_server.headers[0]["X-Postmark-Account-Token"] == "account-token"
    assert {header["X-Postmark-Server-Token"] for header in postmark_server.headers[1:]} == {KEY}
    assert [one["name"] for one in report["domains"]["created"]] == ["postmarkapp.com"]
    assert report["templates"]["created"] == [
        {
            "name": "welcome",
            "notes": [
                "aliases are in lower case here",
                "its layout 'my-layout' is merged into it",
            ],
        }
    ]
    assert [one["name"] for one in report["templates"]["refused"]] == ["Receipt"]
    (listed,) = installation.json("template", "list")["templates"]
    template = installation.ask(lambda ctx: _template(ctx, listed["alias"]))
    assert (template.html, template.text) == (
        "<body><p>Hello {{person.first_name}}</p></body>",
        "Hello {{person.first_name}}\n-- \nShop",
    )
    stored = installation.json("suppression", "list")["suppressions"]
    assert [(one["email"], one["source"], one["reason"], one["created_at"]) for one in stored] == [
        ("address@wildbit.com", "import", "imported from Postmark: ManualSuppression", "2019-12-10T13:58:33.000Z"),
        ("bounce.address@wildbit.com", "bounce", "imported from Postmark: HardBounce", "2019-12-11T13:58:33.000Z"),
    ]
    _, webhook = report["webhooks"]["created"]
    assert not [secret for secret in ("p%40ss", "p@ss", "key=secret") if secret in json.dumps(report)]
    assert (webhook["name"], webhook["notes"][1]) == (
        "https://www.example.com/hook",
        "events that do not exist here: Open",
    )
    fields = [("name", "value"), ("Authorization", "Basic dXNlcjpwQHNz")]
    assert installation.ask(_webhooks) == [
        ("postmark", "Bounce", 0, [("Authorization", "Basic dXNlcjpwYXNz")]),
        ("postmark", "Delivery", 0, fields),
    ]
    monkeypatch.setenv("POSTMARK_ACCOUNT_TOKEN", "account-token")
    again = installation.json("import", "postmark", "--url", postmark_server.url)
    assert (again["suppressions"]["created"], len(again["domains"]["existing"])) == (0, 1)


def test_without_the_account_token_and_streams_the_rest_is_imported(
    installation: Installation, postmark_server: vendor_server.Vendor
) -> None:
    del postmark_server.answers["/message-streams"]
    said = _failed(installation, "import", "postmark", "--url", postmark_server.url)
    assert "  Stopped: the account token is needed; set POSTMARK_ACCOUNT_TOKEN or use --account-key-file." in said
    assert "Suppressions: 2 created" in said


def test_a_list_that_repeats_itself_is_left(installation: Installation, postmark_server: vendor_server.Vendor) -> None:
    page = {"TotalCount": 10**9, "Templates": [{"TemplateId": 5678}]}
    postmark_server.answers |= {"/templates?count=500&offset=0": page, "/templates": page}
    said = _failed(installation, "import", "postmark", "--url", postmark_server.url)
    assert "  Stopped: /templates: the list does not end." in said
    assert postmark_server.requests.count("/templates/5678") == 1
    assert "Suppressions: 2 created" in said


def test_a_dump_that_is_too_large_is_read_in_spans_of_days(
    installation: Installation, postmark_server: vendor_server.Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/message-streams/outbound/suppressions/dump"
    rows = vendor_responses.POSTMARK[path]["Suppressions"]

    def dump(target: str) -> object:
        span = dict(part.split("=") for part in target.partition("?")[2].split("&") if part)
        first, last = span.get("fromdate", "0"), span.get("todate", "9")
        return {"Suppressions": [row for row in rows if first <= row["CreatedAt"][:10] <= last]}

    postmark_server.answers[path] = dump
    for needless in ("/templates?count=500&offset=0", "/webhooks"):
        del postmark_server.answers[needless]
    # Room for one of the two, and for the list of streams.
    monkeypatch.setattr(json_api, "MAX_BODY_BYTES", 240)
    monkeypatch.setattr(postmark, "FIRST_DAY", dt.date(2019, 12, 1))
    said = _failed(installation, "import", "postmark", "--url", postmark_server.url)
    assert "Suppressions: 2 created, 0 already exist, 0 not imported." in said


def test_a_wrong_key_creates_nothing_and_is_not_shown(installation: Installation, resend: vendor_server.Vendor) -> None:
    body = {"statusCode": 403, "name": "invalid_api_key", "message": f"API key {KEY} is invalid"}
    resend.answers = dict.fromkeys(("/domains", "/templates", "/suppressions", "/webhooks"), (403, body, {}))
    said = _failed(installation, "import", "resend", "--url", resend.url)
    assert "  Stopped: 127.0.0.1 responded to /domains with 403: API key *** is invalid." in said
    assert said.count("API key *** is invalid") == 4
    assert said.count(": 0 created, 0 already exist, 0 not imported.") == 4


def test_a_key_that_may_not_read_all_of_it_takes_the_rest(
    installation: Installation, postmark_server: vendor_server.Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTMARK_ACCOUNT_TOKEN", "wrong")
    refusal = {"ErrorCode": 10, "Message": "No Account or Server API tokens were supplied in the HTTP headers."}
    postmark_server.answers["/domains"] = (401, refusal, {})
    said = _failed(installation, "import", "postmark", "--url", postmark_server.url)
    assert "  Stopped: 127.0.0.1 responded to /domains with 401: No Account or Server API tokens were" in said
    assert "Suppressions: 2 created" in said


def test_an_outage_keeps_what_was_created_and_the_next_run_goes_on(
    installation: Installation, resend: vendor_server.Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = "/suppressions?limit=100&after=e169aa45-1ecf-4183-9955-b1499d5701d3"
    resend.answers[second] = (503, {"message": "try later"}, {"Retry-After": "0"})
    said = _failed(installation, "import", "resend", "--url", resend.url)
    assert "Suppressions: 1 created, 0 already exist, 0 not imported." in said
    assert "  Stopped: 127.0.0.1 responded to /suppressions with 503: try later; tried 6 times." in said
    assert "Run the command again: it continues where it stopped." in said
    assert len(installation.json("template", "list")["templates"]) == 2
    resend.answers[second] = vendor_responses.RESEND[second]
    monkeypatch.setattr(importer, "SUPPRESSION_ROWS", 1)
    report = installation.json("import", "resend", "--url", resend.url)
    assert (report["suppressions"]["created"], report["suppressions"]["existing"]) == (1, 1)
    assert len(report["webhooks"]["created"]) == 1


@pytest.mark.parametrize(
    "answer, reason",
    [
        ({"data": "no list"}, "unexpected response: Expected `array`, got `str` - at `$.data`"),
        ({"data": [{"id": 7, "name": "example.com"}]}, "unexpected response: Expected `str`, got `int`"),
        (b"<html>", "unexpected response: JSON is malformed"),
        (b"[" * 100_000, "unexpected response: "),
        ({"has_more": True, "data": [{"id": "same", "name": "example.com"}]}, "the list does not go on after same"),
    ],
)
def test_a_response_of_another_shape_is_reported(
    installation: Installation, resend: vendor_server.Vendor, answer: object, reason: str
) -> None:
    resend.answers["/domains"] = answer
    said = _failed(installation, "import", "resend", "--url", resend.url)
    assert reason in said
    assert "Suppressions: 2 created" in said


def test_a_list_without_an_end_is_left(
    installation: Installation, resend: vendor_server.Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.services.imports.found.MAX_SUPPRESSION_PAGES", 3)
    numbers = iter(range(1_000_000))

    def page(_: str) -> object:
        number = next(numbers)
        return {"has_more": True, "data": [{"id": str(number), "email": f"a{number}@example.net"}]}

    resend.answers |= {"/suppressions?limit=100": page, "/suppressions": page}
    said = _failed(installation, "import", "resend", "--url", resend.url)
    assert "  Stopped: /suppressions: more than 3 pages." in said
    assert "Suppressions: 3 created" in said


def test_an_address_in_the_query_of_an_endpoint_is_not_its_host(
    installation: Installation, resend: vendor_server.Vendor
) -> None:
    endpoint = "https://hooks.example.com?owner=ada@elsewhere.example"
    resend.answers["/webhooks"] = {"data": [{"id": "1", "endpoint": endpoint, "events": ["email.bounced"]}]}
    report = installation.json("import", "resend", "--url", resend.url)
    assert [one["name"] for one in report["webhooks"]["created"]] == ["https://hooks.example.com"]
    assert installation.ask(_webhooks) == [("resend", "email.bounced", 0, [])]


def test_foreign_text_cannot_control_a_terminal(installation: Installation, resend: vendor_server.Vendor) -> None:
    resend.answers["/domains"] = {"data": [{"id": "1", "name": "\x1b[31m" + "x" * 500}]}
    said = installation.text("import", "resend", "--url", resend.url)
    assert "\x1b" not in said
    assert "  ?[31mxxx" in said


def test_an_address_that_is_suppressed_here_keeps_its_reason(
    installation: Installation, resend: vendor_server.Vendor
) -> None:
    installation.text("suppression", "add", "susan.kare@example.com", "--reason", "asked")
    installation.text("import", "resend", "--url", resend.url)
    account_id = installation.json("account", "list")["accounts"][0]["id"]
    kept = installation.ask(lambda ctx: suppressions.find(ctx, account_id, "susan.kare@example.com"))
    assert (kept.reason, kept.source) == ("asked", "operator")


def test_the_key_comes_from_a_file_or_a_variable(
    installation: Installation, resend: vendor_server.Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.json("import", "resend", "--url", resend.url, "--dry-run", "--key-file", "-", given="re_other\n")
    assert resend.headers[0]["Authorization"] == "Bearer re_other"
    monkeypatch.setenv("RESEND_API_KEY", "two\nlines")
    assert cli_runner.usage_error(installation.run("import", "resend", "--url", resend.url)) == (
        "RESEND_API_KEY is not a key: it must be one line of ASCII characters without spaces"
    )
    monkeypatch.delenv("RESEND_API_KEY")
    result = installation.run("import", "resend", "--url", resend.url)
    assert result.exit_code == 2
    assert "No API key given. Set RESEND_API_KEY, or use --key-file." in result.stderr


def test_a_key_is_not_sent_in_the_clear(installation: Installation) -> None:
    assert installation.refusal("import", "resend", "--url", "http://api.example.com") == (
        "url: api.example.com is another host; use https://"
    )
