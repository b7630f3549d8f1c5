"""The scenarios of the real service: the same drivers, and what became of their mail in its store and at its sink."""

import asyncio
import base64
import email
import email.policy
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from clients.conformance import answers, proxy
from clients.conformance.driver import Driver, DriverLost
from clients.conformance.service import POLL_SECONDS, TIMEOUT_SECONDS, Service, ServiceFailed

ATTACHED: Final = bytes(range(256)) * 40
ERROR_MEMBERS: Final = ("status", "code")


class Mismatch(Exception):
    """What came is not what was expected."""


def expect(what: str, expected: object, came: object) -> None:
    """Compare as scenarios do: members that were not asked for are left alone."""
    found = answers.differences(what, expected, came)
    if found:
        raise Mismatch("; ".join(found))


@dataclass(frozen=True, slots=True)
class RealRun:
    """A driver and a service; each scenario has addresses and keys of its own."""

    driver: Driver
    service: Service
    language: str

    def address(self, name: str = "ada") -> str:
        """An address that nobody else writes to."""
        return f"{name}-{uuid.uuid4().hex[:12]}@{self.language}.example"

    def client(self, kind: str, **changes: Any) -> dict[str, Any]:
        """The description of a client with one of the account's credentials."""
        credentials = {
            "key": {"token": self.service.api_key},
            "token": {"token": self.service.token},
            "smtp": {"username": self.service.username, "password": self.service.password},
        }
        return {"base_url": self.service.base_url, **credentials[kind], **changes}

    async def ask(self, operation: str, client: dict[str, Any], **members: Any) -> dict[str, Any]:
        """What the driver says."""
        return await self.driver.ask({"operation": operation, "client": client, **members})

    async def send(self, client: dict[str, Any], *, key: str | None = None, **changes: Any) -> dict[str, Any]:
        """What the driver says of a send."""
        mail = {"from": "shop@example.com", "subject": "Hello", "text": "Hi", **changes}
        return await self.ask("send", client, email=mail, **({"idempotency_key": key} if key else {}))

    async def accepted(self, client: dict[str, Any], *, key: str | None = None, **changes: Any) -> str:
        """The id of a send that has to be accepted."""
        answer = await self.send(client, key=key, **changes)
        expect("answer", {"result": {"status": "queued", "source": "api"}}, answer)
        return str(answer["result"]["id"])

    async def final(self, client: dict[str, Any], message_id: str) -> dict[str, Any]:
        """The message, polled by the driver until it is queued no more."""
        give_up_at = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < give_up_at:
            answer = await self.ask("get", client, id=message_id)
            expect("answer", {"result": {"id": message_id}}, answer)
            if answer["result"]["status"] != "queued":
                message: dict[str, Any] = answer["result"]
                return message
            await asyncio.sleep(POLL_SECONDS)
        raise Mismatch(f"{message_id} is still queued after {TIMEOUT_SECONDS:g} seconds")


async def _key_and_credential(run: RealRun) -> None:
    to = run.address()
    message_id = await run.accepted(run.client("key"), to=to)
    answer = await run.ask("wait", run.client("smtp"), id=message_id, timeout=TIMEOUT_SECONDS)
    expect("answer", {"result": {"id": message_id}}, answer)
    message = answer["result"]
    recipient = {"email": to, "status": "delivered", "attempt_count": 1, "last_smtp_code": 250}
    expect("message", {"status": "delivered", "from": "shop@example.com", "recipients": [recipient]}, message)
    if not message.get("created_at") or not message["recipients"][0].get("delivered_at"):
        raise Mismatch(f"expected times in the message, came {message}")
    expect("mails at the sink", 1, len(await run.service.inbox(to)))


async def _token(run: RealRun) -> None:
    message_id = await run.accepted(run.client("token"), to=[run.address(), run.address()])
    message = await run.final(run.client("token"), message_id)
    expect("message", {"status": "delivered", "recipient_count": 2, "credits_reserved": 2}, message)


async def _attachment(run: RealRun) -> None:
    to = run.address()
    attached = {"filename": "Prüfung.bin", "bytes_base64": base64.b64encode(ATTACHED).decode()}
    subject = "Grüße, 世界 🎉"
    message_id = await run.accepted(
        run.client("smtp"),
        to=to,
        subject=subject,
        html="<p>Grüße",
        tags=["März"],
        headers={"X-Order": "1"},
        attachments=[attached],
    )
    await run.final(run.client("smtp"), message_id)
    (raw,) = await run.service.inbox(to)
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    (part,) = mail.iter_attachments()
    expect("the subject at the sink", subject, str(mail["subject"]))
    expect("the header at the sink", "1", str(mail["x-order"]))
    expect("the file's name at the sink", attached["filename"], part.get_filename())
    if part.get_content() != ATTACHED:
        raise Mismatch("the attachment's bytes at the sink are others")


async def _template(run: RealRun) -> None:
    to = run.address()
    mail = {"from": "shop@example.com", "to": to, "template": "welcome", "variables": {"name": "Ada"}}
    answer = await run.ask("send", run.client("key"), email=mail)
    expect("answer", {"result": {"subject": "Welcome, Ada", "to": [to]}}, answer)


async def _bounce(run: RealRun) -> None:
    message_id = await run.accepted(run.client("key"), to=run.address("bounce"))
    message = await run.final(run.client("smtp"), message_id)
    expect("message", {"status": "failed", "recipients": [{"status": "bounced", "last_smtp_code": 550}]}, message)
    if not message["recipients"][0].get("bounced_at"):
        raise Mismatch(f"expected the time of the bounce, came {message}")


def _refused(status: int, code: str, **of_error: Any) -> dict[str, Any]:
    return {"error": {"status": status, "code": code, "is_retryable": False, **of_error}}


async def _unknown_id(run: RealRun) -> None:
    answer = await run.ask("get", run.client("smtp"), id="em_000000000000000000000000dead")
    expect("answer", _refused(404, "not_found"), answer)
    if not str(answer["error"].get("request_id")).startswith("req_"):
        raise Mismatch(f"expected a request's id, came {answer}")


async def _wrong_password(run: RealRun) -> None:
    answer = await run.send({**run.client("smtp"), "password": run.service.api_key}, to=run.address())
    expect("answer", _refused(401, "unauthorized"), answer)


async def _foreign_domain(run: RealRun) -> None:
    answer = await run.send(run.client("key"), to=run.address(), **{"from": "shop@not-ours.example"})
    expect("answer", _refused(403, "forbidden"), answer)


async def _bad_address(run: RealRun) -> None:
    expect("answer", _refused(400, "invalid_request"), await run.send(run.client("key"), to="ada@"))


async def _same_key_other_body(run: RealRun) -> None:
    key, to = f"order-{uuid.uuid4()}", run.address()
    await run.accepted(run.client("key"), key=key, to=to)
    answer = await run.send(run.client("key"), key=key, to=to, text="something else")
    expect("answer", _refused(409, "idempotency_conflict", idempotency_key=key, is_idempotency_conflict=True), answer)


async def _same_key_same_body(run: RealRun) -> None:
    key, to = f"order-{uuid.uuid4()}", run.address()
    first = await run.accepted(run.client("key"), key=key, to=to)
    expect("the second id", first, await run.accepted(run.client("key"), key=key, to=to))
    await run.final(run.client("smtp"), first)
    await _expect_one(run, to, first)


async def _lost_answer(run: RealRun) -> None:
    to = run.address()
    async with proxy.losing(run.service.base_url) as (losing, base_url):
        message_id = await run.accepted(run.client("key", base_url=base_url), to=to, subject="Only once")
    expect("requests", 2, len(losing.requests))
    if not losing.lost_answers[0].startswith(b"HTTP/1.1 202 "):
        raise Mismatch(f"expected that a 202 was lost, came {losing.lost_answers[0][:100]!r}")
    keys = {request.value("idempotency-key") for request in losing.requests}
    expect("keys", 1, len(keys))
    await run.final(run.client("smtp"), message_id)
    await _expect_one(run, to, message_id)


async def _expect_one(run: RealRun, to: str, message_id: str) -> None:
    """One message in the log, one mail at the sink, one credit gone."""
    expect("messages in the log", [{"id": message_id}], await run.service.messages_to(to))
    expect("mails at the sink", 1, len(await run.service.inbox(to)))
    expect("credits charged", 1, await run.service.charged(message_id))


async def _webhook(run: RealRun) -> None:
    to = run.address()
    await run.accepted(run.client("key"), to=to)
    event = await run.service.event(to)
    changed = event.body.replace(to.encode(), to.replace("ada", "adb").encode(), 1)
    for body, secret, valid in (
        (event.body, run.service.secret, True),
        (changed, run.service.secret, False),
        (event.body, run.service.secret + "x", False),
    ):
        line = {"body_base64": base64.b64encode(body).decode(), "header": event.value("service-signature")}
        now = int(time.time())
        answer = await run.driver.ask({"operation": "verify", **line, "secret": secret, "tolerance": 300, "now": now})
        if answer.get("result") is not valid:
            raise Mismatch(f"verify: expected {valid}, came {answer}")
        parsed = await run.driver.ask(
            {"operation": "parse_event", **line, "secrets": ["whsec_old", secret], "tolerance": 300, "now": now}
        )
        wanted = {"result": {"type": "email.delivered", "data": {"to": to, "smtp_code": 250, "test": False}}}
        expect("parse_event", wanted if valid else {"error": {"kind": "signature"}}, parsed)


SCENARIOS: Final[dict[str, Callable[[RealRun], Awaitable[None]]]] = {
    "real: an API key sends, an SMTP credential waits until delivered": _key_and_credential,
    "real: a JWT sends and polls": _token,
    "real: an attachment and Unicode arrive as they were": _attachment,
    "real: a template is filled in": _template,
    "real: bounce@ ends failed, with the reply": _bounce,
    "real: an unknown id is 404": _unknown_id,
    "real: a wrong password is 401": _wrong_password,
    "real: an unregistered domain is 403": _foreign_domain,
    "real: a bad address is 400": _bad_address,
    "real: the same key with another body is 409": _same_key_other_body,
    "real: the same key with the same body is one message": _same_key_same_body,
    "real: a lost answer is one message, one mail, one credit": _lost_answer,
    "real: a webhook verifies and is parsed, and a changed one is not": _webhook,
}


async def play(
    rows: dict[str, list[str] | None],
    driver: Driver,
    service: Service,
    *,
    language: str,
    names: Iterable[str] = SCENARIOS,
) -> None:
    """Try each scenario; what is wrong goes into its row."""
    run = RealRun(driver, service, language)
    for name in names:
        rows[name] = []
        try:
            await SCENARIOS[name](run)
        except (Mismatch, DriverLost, ServiceFailed) as problem:
            rows[name] = [str(problem)]
