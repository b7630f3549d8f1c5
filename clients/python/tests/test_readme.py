"""The code of the README, run from the first block to the last against a server on loopback."""

import hashlib
import hmac
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from clients.python.tests.scripted import Seen, Serve, answer

README = (Path(__file__).parent.parent / "README.md").read_text()
SEND, WAIT, ERRORS, WEBHOOK, DJANGO, ASYNCIO = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
IMPORTS = SEND.partition("\n\n")[0]
RECEIPT = {"id": "em_1", "status": "queued"}
RECIPIENT = {"email": "ada@example.net", "status": "delivered", "last_smtp_response": "2.0.0 Ok"}
SECRET = "whsec_x"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "receipt.pdf").write_bytes(b"%PDF")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_x")
    monkeypatch.setenv("POSTROAD_WEBHOOK_SECRET", SECRET)
    monkeypatch.setattr(time, "sleep", lambda _: None)


def run(*blocks: str, url: str = "https://mail.example.com") -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace("https://mail.example.com", url), names)  # noqa: S102 - it is what readers would run
    if "client" in names:
        names["client"].close()
    return names


def test_it_is_under_a_page() -> None:
    assert len(README.splitlines()) <= 110


def test_the_settings_are_those_of_the_backend() -> None:
    names = run(IMPORTS, DJANGO)
    module, _, backend = names["EMAIL_BACKEND"].rpartition(".")
    source = (Path(__file__).parent.parent / "src" / f"{module.replace('.', '/')}.py").read_text()
    assert f"class {backend}(" in source
    assert all(f'"{name}"' in source for name in names["POSTROAD"])


def test_it_sends_and_waits(serve: Serve, seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    delivered = {"id": "em_1", "status": "delivered", "recipients": [RECIPIENT]}
    names = run(SEND, WAIT, url=serve(answer(202, RECEIPT), answer(200, RECEIPT), answer(200, delivered)))
    assert names["message"].status == "delivered"
    assert capsys.readouterr().out == "ada@example.net delivered 2.0.0 Ok\n"
    assert seen[0]["headers"]["Idempotency-Key"] == "order-1042-receipt"
    assert json.loads(seen[0]["body"])["attachments"] == [{"filename": "receipt.pdf", "content": "JVBERg=="}]


@pytest.mark.parametrize("status, code, said", [
    (402, "insufficient_credits", "add credits"), (429, "rate_limited", "with the key order-1042-receipt"),
    (403, "forbidden", "403 forbidden: no (req_1)"),
])  # fmt: skip
def test_it_tells_errors_apart(
    serve: Serve, status: int, code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = answer(status, {"error": "no", "code": code, "request_id": "req_1"}, Retry_After="3600")
    run(SEND, ERRORS, url=serve(answer(202, RECEIPT), refusal))
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("secret, status", [(SECRET, "204 No Content"), ("whsec_y", "400 Bad Request")])
def test_its_webhook_trusts_who_has_the_secret(secret: str, status: str, capsys: pytest.CaptureFixture[str]) -> None:
    body = b'{"id": "evt_1", "type": "email.delivered", "data": {"to": "ada@example.net"}}'
    now = int(time.time())
    signature = hmac.new(secret.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    environ = {
        "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)),
        "HTTP_SERVICE_SIGNATURE": f"t={now},v1={signature}",
    }  # fmt: skip
    answers: list[str] = []
    run(IMPORTS, WEBHOOK)["app"](environ, lambda line, _: answers.append(line))
    assert answers == [status]
    assert ("email.delivered ada@example.net" in capsys.readouterr().out) == (secret == SECRET)


async def test_it_sends_from_asyncio(serve: Serve, seen: Seen) -> None:
    welcome = run(IMPORTS, ASYNCIO, url=serve(answer(202, RECEIPT)))["welcome"]
    assert (await welcome("ada@example.net", "Ada")).id == "em_1"
    assert json.loads(seen[0]["body"]) == {
        "from": "hello@example.com", "to": "ada@example.net", "template": "welcome", "variables": {"name": "Ada"},
    }  # fmt: skip
