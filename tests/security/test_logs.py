"""Security case J8: a whole service, every kind of login at every listener, and then a search through its log."""

import base64
import re
import smtplib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli import cli_runner
from tests.cli.test_dev import credential, handover, start

WRONG = "not the password"
CHOSEN = "a sentence that jo has chosen"
HOOK = "https://hooks.example.org/hook-with-a-secret?key=hook-with-a-secret"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def plain(*parts: str) -> str:
    """The initial response of AUTH PLAIN: identity, username and password."""
    return encoded("\0".join(parts))


def talk(dev_info: dict[str, Any]) -> list[str]:
    """A session with every kind of login; gives what must stand in no log."""
    username, password = credential(dev_info)
    where = (dev_info["smtp"]["host"], dev_info["smtp"]["port"])
    secret, subject = "the goods are in locker 4711", "Locker 4711"
    content = f"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: {subject}\r\n\r\n{secret}\r\n"
    broken = encoded(f"{username}\0{password}")
    with smtplib.SMTP(*where, timeout=cli_runner.TIMEOUT_SECONDS) as client:
        client.ehlo()
        for wrong in (f"AUTH PLAIN {broken}", f"AUTH XOAUTH2 {broken}", f"AUTH {password}", f"{password} {broken}"):
            assert client.docmd(wrong)[0] >= 500
        assert client.docmd("AUTH", "PLAIN " + plain("", username, WRONG))[0] == 535
        assert client.docmd("AUTH", "PLAIN " + plain("boss", username, password))[0] == 535
        assert client.docmd("AUTH", "PLAIN " + plain("", username, password))[0] == 235
        assert client.sendmail("shop@example.com", ["ada@example.net"], content) == {}
        for bad in (f"{secret}\r\n", f"X-Service-{password}: 1\r\n{content}", content.replace("example.com", secret)):
            with pytest.raises(smtplib.SMTPDataError):
                client.sendmail("shop@example.com", ["ada@example.net"], bad)
    with smtplib.SMTP(*where, timeout=cli_runner.TIMEOUT_SECONDS) as client:
        client.ehlo()
        assert client.docmd("AUTH", "LOGIN")[0] == 334
        assert client.docmd(encoded(username))[0] == 334
        assert client.docmd(encoded(WRONG))[0] == 535
        client.user, client.password = username, password
        assert client.auth("LOGIN", client.auth_login, initial_response_ok=False)[0] == 235
        assert client.docmd("MAIL", f"FROM:<{password}@example.com> {broken}")[0] >= 500
        assert client.docmd("RCPT", f"TO:<{broken}@example.com>")[0] >= 500
    answer = httpx.get(f"{dev_info['base_url']}/v1/account", auth=(username, WRONG))
    assert answer.status_code == 401
    pairs = [f"\0{username}\0{each}" for each in (password, WRONG)] + [f"boss\0{username}\0{password}"]
    payloads = [encoded(text) for text in (username, password, WRONG, *pairs, f"{username}:{WRONG}")]
    return [password, WRONG, broken, *payloads, secret, subject]


def visit(dev_info: dict[str, Any]) -> list[str]:
    """The same over HTTP: secrets that are created, used, mistyped, and put where they do not belong."""
    login = dev_info["login"]
    with httpx.Client(base_url=dev_info["base_url"], timeout=cli_runner.TIMEOUT_SECONDS) as client:
        token = client.post("/v1/auth/login", json=login).json()["token"]
        mine = {"Authorization": f"Bearer {token}"}
        assert client.post("/v1/auth/login", json={**login, "password": WRONG}).status_code == 401
        assert client.post("/v1/auth/login", content=f'{{"password": "{login["password"]}"').status_code == 400
        made = [
            client.post("/v1/api-keys", json={"name": "x"}, headers=mine).json()["secret"],
            client.post("/v1/credentials", json={"name": "x"}, headers=mine).json()["password"],
            client.put("/v1/webhook", json={"url": HOOK}, headers=mine).json()["secret"],
            client.post("/v1/webhook/rotate-secret", json={}, headers=mine).json()["secret"],
        ]
        invited = {"email": "jo@example.com", "role": "developer"}
        link = client.post("/v1/team", json=invited, headers=mine).json()["link"].rpartition("/")[2]
        assert client.get(f"/password/{link}").status_code == 200
        assert client.post(f"/password/{link}", data={"password": CHOSEN}).status_code == 303
        joined = [cookie.value or "" for cookie in client.cookies.jar]
        client.cookies.clear()
        assert client.post("/login", data={**login, "next": "/"}).status_code == 303
        cookies = [cookie.value or "" for cookie in client.cookies.jar]
        csrf_token = re.findall(r'name="csrf_token" value="([0-9a-f]+)"', client.get("/profile").text)[0]
        secrets = [token, login["password"], *made, link, CHOSEN, *joined, *cookies, csrf_token, "hook-with-a-secret"]
        for secret in secrets:
            assert client.get(f"/{secret}", params={"key": secret}).status_code == 404
            assert client.get(f"/emails/{secret}", headers={"Authorization": f"Bearer {secret}x"}).status_code == 401
            assert client.post("/emails", content=secret, headers=mine).status_code == 400
        assert client.post("/v1/webhook/ping", headers=mine).status_code < 500
    return secrets


def test_j8_no_log_holds_a_password_an_auth_payload_or_a_content(tmp_path: Path) -> None:
    """J8: logins of every kind, right, wrong and broken, good and bad mail; then grep all that was ever logged."""
    with start(tmp_path, environment={"POSTROAD_LOGS__LEVEL": "debug", "POSTROAD_LOGS__FORMAT": "json"}) as service:
        dev_info = handover(service, tmp_path)
        secrets = [*talk(dev_info), *visit(dev_info)]
        assert service.stop()[0] == 0
    log = service.errors.read_text()
    assert log.count('"event":"submission"') >= 8
    assert log.count('"event":"request"') >= 40
    for secret in secrets:
        assert secret.rstrip("=") not in log, secret
