"""An account with one of everything, all of it named by somebody who means harm; and everything that a store holds."""

import apsw
import asyncpg
import msgspec

from postroad import context
from postroad.model.bounces import disposition
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.protocol.smtp import values
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import dev_inbox, saved_views
from postroad.services.people import api_keys, credentials
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.services.webhooks import endpoints
from postroad.storage.mail import messages, webhooks
from postroad.storage.mail import suppressions as stored_suppressions
from postroad.storage.people import approvals, second_factors
from tests import accepted_mail, logged_requests, received_rows, webhook_rows
from tests.services import claimed_mail

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\" onload='x"
Dump = dict[str, list[tuple[object, ...]]]


async def create_sample_data(ctx: context.Context, account_id: str, *, domain: str) -> dict[str, str]:
    """One of everything; the ids by kind."""
    await accepted_mail.allow_sending(ctx, account_id, domain=domain)
    credential, _ = await credentials.create(ctx, account_id, HOSTILE)
    scopes = frozenset({callers.Permission.SEND})
    key, _ = await api_keys.create(ctx, account_id, credential_id=None, name=HOSTILE, scopes=scopes)
    await templates.put(ctx, account_id, "furniture", subject=HOSTILE, text=HOSTILE, html=f"<p>{HOSTILE}</p>")
    view = await saved_views.save(ctx, account_id, name=HOSTILE[:40], search=f'"{HOSTILE[:25]}"')
    (owned,) = await domains.of_account(ctx, account_id)
    source = stored_suppressions.Source.ACCOUNT
    suppressed, _ = await suppressions.add(ctx, account_id, f"furniture@{domain}", reason=HOSTILE, source=source)
    endpoint = (await endpoints.save(ctx, account_id, url=webhook_rows.URL)).webhook
    message_id = await accepted_mail.accept(
        ctx,
        account_id,
        sender=f'"{HOSTILE[:25]}" <shop@{domain}>',
        to=(f"ada@to-{domain}", f"bob@to-{domain}"),
        subject=HOSTILE,
        text=HOSTILE,
        html=f"<p>{HOSTILE}</p>",
    )
    for claimed in await claimed_mail.claim_all(ctx, claimed_mail.WORKER):
        verdict = disposition.Verdict.BOUNCED if claimed.email_key.startswith("ada") else disposition.Verdict.RETRY
        code = 550 if verdict is disposition.Verdict.BOUNCED else 451
        reported = claimed_mail.outcome(ctx, claimed, verdict, recipient_count=2, code=code, response=HOSTILE)
        await ctx.outcome_commits.submit([reported])
    failed = webhooks.State.FAILED
    delivery = await webhook_rows.put(
        ctx, account_id, state=failed, message_id=message_id, attempt_count=1, ended_at=ctx.clock()
    )
    await webhook_rows.put_attempt(ctx, delivery, 1, status_code=500, response_body=HOSTILE)
    route = await received_rows.route(ctx, account_id, f"furniture@in.{domain}")
    mail = await received_rows.put(
        ctx,
        account_id,
        route_id=route.id,
        sender=HOSTILE,
        subject=HOSTILE,
        envelope_sender=HOSTILE,
        email_id=message_id,
    )
    async with ctx.store.reading() as tx:
        first, *_ = await messages.recipients(tx, account_id, message_id)
    return {
        "approval": await ask_for_approval(ctx, account_id, key.id, HOSTILE),
        "api_key": key.id,
        "credential": credential.id,
        "domain": owned.id,
        "inbound_route": route.id,
        "message": message_id,
        "received_mail": mail.id,
        "recipient": first.id,
        "request": await _refused_request(ctx, account_id),
        "suppression": suppressed.email_key,
        "template": "furniture",
        "view": view.id,
        "webhook": endpoint.id,
        "webhook_delivery": delivery.id,
    }


async def _refused_request(ctx: context.Context, account_id: str) -> str:
    request_id = logged_requests.note(ctx, account_id, body=msgspec.json.encode({"subject": HOSTILE}))
    await ctx.request_log.flush()
    return request_id


async def ask_for_approval(ctx: context.Context, account_id: str, key_id: str, text: str, *, key: str = "k") -> str:
    """A send that waits; its id."""
    asked = approvals.Approval(
        id=ctx.new_id(identifiers.APPROVAL, now=ctx.clock()),
        account_id=account_id,
        key_id=key_id,
        identity=account_id,
        idempotency_key=key,
        body_hash=b"",
        is_batch=False,
        is_test=False,
        body=msgspec.json.encode({"from": text, "to": [text], "subject": text, "html": text}),
        recipients=1,
        request_id="req_" + "0" * 28,
        state=approvals.State.PENDING,
        created_at=ctx.clock(),
    )
    async with ctx.store.transaction() as tx:
        await approvals.insert(tx, asked)
    return asked.id


def receive(mail: dev_inbox.Inbox) -> str:
    """A message in the inbox of the simulator; its id."""
    head = f"From: x@example.com\r\nTo: y@example.net\r\nSubject: {HOSTILE}\r\nContent-Type: text/html\r\n"
    content = f"{head}\r\n{HOSTILE}\r\n".encode()
    return mail.add(values.MailTransaction("x@example.com", ("y@example.net",), (content,))).id


async def dump(url: str) -> Dump:
    """Every row of a store, but for refused requests, which are written later."""
    if url.startswith("sqlite:///"):
        return _of_file(url.removeprefix("sqlite:///")) | {"request_log": []}
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        found = {name: await connection.fetch(f"SELECT * FROM {name}") for (name,) in tables}  # noqa: S608 - ours
        tuples = {name: sorted((tuple(row) for row in rows), key=repr) for name, rows in found.items()}
        return tuples | {"request_log": []}
    finally:
        await connection.close()


def _of_file(path: str) -> Dump:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}  # noqa: S608
    finally:
        connection.close()


async def add_passkey(ctx: context.Context, login_id: str, *, mark: str) -> str:
    """A passkey that no authenticator has; returns its id."""
    passkey = second_factors.Passkey(
        id=ctx.new_id(identifiers.PASSKEY, now=ctx.clock()),
        login_id=login_id,
        credential_id=mark.encode(),
        public_key=b"",
        sign_count=0,
        user_handle=b"",
        rp_id="localhost",
        transports="",
        name=mark,
        created_at=ctx.clock(),
    )
    async with ctx.store.transaction() as tx:
        await second_factors.insert_passkey(tx, passkey)
    return passkey.id
