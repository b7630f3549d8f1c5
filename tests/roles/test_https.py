"""The role api over HTTPS: secure cookies and HSTS by themselves, and a plain listener that only redirects."""

import ssl
from pathlib import Path

import httpx
import msgspec
import pytest

from postroad import config, roles
from postroad.web import path_switch
from tests import contexts, local_requests
from tests.api import app_server
from tests.roles.test_smtp_listeners import certificate
from tests.roles.test_supervisor import run, with_role

# Every form of a credential, of our own API, of the compatible ones, and of the dashboard.
CREDENTIALS = (
    ("Authorization", "Bearer secret"),
    ("X-Postmark-Server-Token", "secret"),
    ("X-Postmark-Account-Token", "secret"),
    ("Cookie", "theme=dark; __Host-postroad=secret"),
    ("Cookie", "__Host-postroad_pending=secret"),
)


def settings(folder: Path, **http: object) -> config.Settings:
    return contexts.load(
        f"sqlite:///{folder}/postroad.db", http={"listen": "127.0.0.1:0", **http}, tls=certificate(folder)
    )


def untrusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_pages_are_secure_and_plain_requests_are_redirected_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announced: list[roles.Addresses] = []
    answers: dict[str, httpx.Response] = {}
    refused: dict[tuple[str, str], httpx.Response] = {}

    async def work(role_context: roles.RoleContext) -> None:
        secure, plain = f"https://{announced[0]['http']}", f"http://{announced[0]['http_redirect']}"
        async with httpx.AsyncClient(verify=untrusting(), timeout=600) as client:
            answers["page"] = await client.get(f"{secure}/login")
            answers["redirected"] = await client.get(f"{plain}/messages?status=bounced")
            answers["post"] = await client.post(f"{plain}/emails", json={})
            answers["cookie"] = await client.get(f"{plain}/messages", headers={"Cookie": "theme=dark; postroad=old"})
            for field, value in CREDENTIALS:
                refused[field, value] = await client.get(f"{plain}/servers/1", headers={field: value})
        role_context.stopping.set()

    with_role(monkeypatch, work)
    chosen = settings(tmp_path, redirect_listen="127.0.0.1:0", base_url="https://mail.example.com")
    await run(chosen, ["api", "test"], app_server.CapturedLog(), announce=announced.append)
    assert answers["page"].status_code == 200
    assert answers["page"].headers["Strict-Transport-Security"] == "max-age=31536000"
    assert answers["redirected"].status_code == 308
    assert answers["redirected"].headers["Location"] == "https://mail.example.com/messages?status=bounced"
    # A browser that has an old cookie, or follows a link with a token, gets to the page.
    assert answers["cookie"].status_code == 308
    for what, answer in {("POST", "body"): answers["post"], **refused}.items():
        assert answer.status_code == 400, what
        assert "Use https://mail.example.com. Replace this credential: it was sent unencrypted." in answer.text, what


async def test_without_the_dashboard_recipients_still_have_their_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announced: list[roles.Addresses] = []
    answers: dict[str, httpx.Response] = {}

    async def work(role_context: roles.RoleContext) -> None:
        async with httpx.AsyncClient(verify=untrusting(), timeout=600) as client:
            for path in ("/unsubscribe/x", "/login", "/", "/v1/account"):
                answers[path] = await client.get(
                    f"https://{announced[0]['http']}{path}", headers={"Accept": "text/html"}
                )
        role_context.stopping.set()

    with_role(monkeypatch, work)
    chosen = settings(tmp_path)
    chosen = msgspec.structs.replace(chosen, dashboard=msgspec.structs.replace(chosen.dashboard, enabled=False))
    await run(chosen, ["api", "test"], app_server.CapturedLog(), announce=announced.append)
    assert {path: answer.status_code for path, answer in answers.items()} == {
        "/unsubscribe/x": 404,
        "/login": 404,
        "/": 404,
        "/v1/account": 401,
    }
    assert "This unsubscribe link is not valid." in answers["/unsubscribe/x"].text
    assert answers["/login"].json()["code"] == "not_found"


async def test_a_request_without_a_path_is_redirected_to_the_first_page() -> None:
    redirect = path_switch.HttpsRedirect(
        "https://mail.example.com/app", refuse=lambda _: (400, [], b""), credentials=()
    )
    request = local_requests.Request(target=b"*")
    await redirect(request)
    assert (request.status, request.fields) == (308, [(b"location", b"https://mail.example.com/")])


def test_without_a_base_url_links_and_pages_use_https(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    assert config.local_url(chosen) == "https://127.0.0.1:0"
    assert not config.is_behind_proxy(chosen)
