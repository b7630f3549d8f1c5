"""An installation that has one of everything, for walks over all that can be read; made by its own services.

The mail is that of the sample week. Whoever adds something that people or programs can look at adds one of it here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from postroad import config, context
from postroad.cli.dev import sample_week
from postroad.cli.framework import data_folder
from postroad.mail import notice_outbox, unsubscribe_links
from postroad.mail.results import async_bounces, complaints
from postroad.model.bounces import disposition
from postroad.model.events import event_formats
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.reports import arf
from postroad.protocol.smtp import values
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import attachment_links, routes
from postroad.services.messages import dev_inbox, queue_changes, saved_views
from postroad.services.operations import destinations
from postroad.services.operations.notices import choices
from postroad.services.people import api_keys, credentials, sso_connections
from postroad.services.people import users as account_users
from postroad.services.queue import holds, sources
from postroad.services.templates import starters, template_drafts, templates
from postroad.services.webhooks import endpoint_settings, endpoints, listeners
from postroad.storage.mail import webhooks
from postroad.storage.operations import certificates, processes
from postroad.storage.people import users
from tests import accepted_mail, contexts, logged_requests, received_rows, reports, webhook_rows
from tests.dashboard import browser_client, sample_account
from tests.protocol.reports import complaints as complaint_samples
from tests.services import claimed_mail
from tests.services.people import authenticator

MESSAGES: Final = 60
HOST: Final = "mail.example.com"
ISSUER: Final = "https://login.example.org"
# Ids by kind; what needs two has them with a slash between.
Things = Mapping[str, Sequence[str]]


def settings(database_url: str) -> config.Settings:
    """Every section that changes what is shown: a certificate by ACME, sources, pools, upstreams, routes, SSO."""
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": contexts.SECRET_KEY},
            "acme": {"names": [HOST]},
            "http": {"base_url": f"https://{HOST}", "redirect_listen": "127.0.0.1:80"},
            "submission": {"listen": "127.0.0.1:587"},
            "inbound": {"listen": "127.0.0.1:25"},
            "delivery": {"return_path_domain": HOST},
            "operator": {"email": f"postmaster@{HOST}", "from": f"postroad@{HOST}"},
            "sources": (
                {"name": "out_1", "address": "192.0.2.1", "hello_name": "out-1.example.com"},
                {"name": "out_2", "address": "192.0.2.2"},
                {"name": "bulk_1", "address": "2001:db8::1", "pool": "bulk"},
            ),
            "upstreams": ({"name": "relay", "host": "relay.example.com"},),
            "routes": ({"providers": ["google"], "pool": "bulk"}, {"tags": ["invoice"], "upstreams": ["relay"]}),
            "sso": {"issuer": ISSUER, "client_id": "postroad"},
            "webhooks": {"allow_private": webhook_rows.PUBLIC},
        },
    )


@dataclass(frozen=True, slots=True)
class Installation:
    """Who looks, and the ids of what there is, by kind."""

    owner: users.User
    operator: users.User
    things: Things


@pytest_asyncio.fixture
async def installed(
    ctx: context.Context,
    clock: contexts.Clock,
    mail: dev_inbox.Inbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Installation:
    """An installation with one of everything."""
    # The sample week asks for a store of its own; here it has one.
    monkeypatch.setattr(data_folder.DataFolder, "owns", lambda *_: True)
    return await furnish(ctx, clock, mail, tmp_path)


async def furnish(ctx: context.Context, clock: contexts.Clock, inbox: dev_inbox.Inbox, folder: Path) -> Installation:
    """Fill an empty installation."""
    account, other = await accounts.create(ctx, "Shop"), await accounts.create(ctx, "Other")
    owner = await browser_client.person(ctx, account.id, "owner@shop.example", callers.Role.OWNER)
    clock.pass_seconds(1)  # the owner is the first
    operator = await browser_client.person(ctx, account.id, "operator@shop.example", callers.Role.READ_ONLY)
    await account_users.add_operator(ctx, operator.email)
    await accounts.suspend(ctx, other.id, reason="too many complaints")
    await accepted_mail.allow_sending(ctx, account.id)
    week = await sample_week.write(ctx, data_folder.DataFolder(folder), account.id, count=MESSAGES)
    assert week is not None
    link = unsubscribe_links.Link(account.id, "news", "ada@example.net", week.message, accepted_mail.DOMAIN)
    things = {
        "account": [account.id, other.id],
        "user": [week.user, owner.id],
        "domain": [one.id for one in await domains.of_account(ctx, account.id)],
        "recipient": [week.recipient, "no-more-mail@gmail.com"],
        "suppression": ["no-more-mail@gmail.com"],
        **await _mail(ctx, account.id, week),
        **await _templates(ctx, account.id),
        **await _webhooks(ctx, account.id, week.delivery),
        "approval": [await _keys(ctx, account.id)],
        "credential": [one.id for one in await credentials.of_account(ctx, account.id) if one.revoked_at is None],
        "event_type": ["email.bounced", "account.suspended"],
        "connection": [account.id, "installation"],
        "request": [logged_requests.note(ctx, account.id)],
        "unsubscribe": [unsubscribe_links.write(ctx.keys.unsubscribe, link)],
        "notice": [choices.unsubscribe_url(ctx, owner.id, "credits.low").rpartition("/")[2]],
        **await _operations(ctx, account.id),
        **_received(inbox),
        **await _inbound(ctx, account.id),
    }
    await saved_views.save(ctx, account.id, name="Bounced", search="status:bounced")
    await sso_connections.save(
        ctx,
        account.id,
        sso_connections.Draft(
            issuer=ISSUER, client_id="shop", domains=["shop.example"], groups={"staff": callers.Role.ANALYST}
        ),
    )
    await sample_account.add_passkey(ctx, owner.login_id or "", mark="key")
    await authenticator.set_up(ctx, operator, clock)
    invited = await account_users.invite(ctx, account.id, email="new@shop.example", role=callers.Role.ANALYST)
    return Installation(owner, operator, {**things, "password_link": [invited.link_token]})


async def _mail(ctx: context.Context, account_id: str, week: sample_week.SampleIds) -> Things:
    """A message of each kind, beside those of the week; one is complained about, and bounces later."""

    async def accept(**fields: Any) -> str:
        return await accepted_mail.accept(ctx, account_id, sender="Shop <orders@shop.example>", **fields)

    file = send_request.Attachment("a.txt", "aGk=", "text/plain", None)
    plain = await accept(html="<p>Hi</p>", attachments=(file,), tags=("order",), metadata={"order": "7"})
    for claimed in await claimed_mail.claim_all(ctx, claimed_mail.WORKER):
        if claimed.message_id == plain:
            delivered = claimed_mail.outcome(ctx, claimed, disposition.Verdict.DELIVERED)
            await ctx.outcome_commits.submit([delivered])
    await async_bounces.receive(ctx, await reports.named(ctx, plain), reports.report(reports.group(reports.ADA)))
    report = arf.read(content := complaint_samples.report(complaint_samples.FULL, await reports.path(ctx, plain)))
    assert report is not None
    await complaints.receive(ctx, report, content, sent_to="complaints@return.example.com")
    later = times.to_wire(ctx.clock() + times.HOUR)
    canceled = await accept(send_at=later)
    await queue_changes.cancel_message(ctx, account_id, canceled)
    kinds = [
        plain,
        canceled,
        await accept(send_at=later, expires_in=600),
        await accept(to=("bounce@example.invalid",), is_test=True),
        await accept(to=("ada@example.net", "bob@example.net"), source=statuses.Source.SMTP),
    ]
    return {"message": [week.message, week.waiting, *kinds], "attachment": [f"{plain}/0"]}


async def _templates(ctx: context.Context, account_id: str) -> Things:
    """A layout, a template in it with versions and a draft, and a part."""
    await templates.put(ctx, account_id, "frame", subject="x", text=None, html="<div>{{> content}}</div>")
    await templates.put(ctx, account_id, "footer", subject="x", text="Bye", html="<p>Bye</p>")
    for text in ("Hi {{name}} {{> footer}}", "Hello {{name}} {{> footer}}"):
        await templates.put(ctx, account_id, "framed", subject="Hi", text=text, html=f"<p>{text}</p>", layout="frame")
    draft = templates.Content("Hi!", "Hey {{name}}", None, None, '{"name": "Ada"}')
    await template_drafts.save(ctx, account_id, "framed", draft)
    return {"template": ["receipt", "framed", "frame", "footer"], "starter": list(starters.NAMES)}


async def _webhooks(ctx: context.Context, account_id: str, delivery: str) -> Things:
    """Endpoints in each format, beside that of the week, and a listener."""
    ids: dict[str, str] = {}
    events: dict[str, str] = {}
    for of_format in (event_formats.OWN, *ctx.event_formats):
        kinds = None if of_format == event_formats.OWN else list(ctx.event_formats[of_format].sources)[:1]
        changes = endpoint_settings.Changes(url=webhook_rows.URL, format_events=kinds)
        ids[of_format] = (await endpoints.create(ctx, account_id, changes, of_format=of_format)).webhook.id
        events[of_format] = (await webhook_rows.put_ended(ctx, account_id, webhook_id=ids[of_format])).id
    await listeners.create(ctx, account_id, endpoint_settings.Changes())
    async with ctx.store.reading() as tx:
        first = await webhooks.first_of(tx, account_id)
    assert first is not None
    return {
        "webhook": [first.id, *ids.values()],
        "delivery": [delivery],
        "webhook_delivery": [f"{first.id}/{delivery}"],
        # Of the formats that extensions bring along.
        **{f"{of_format}_webhook": [webhook_id] for of_format, webhook_id in ids.items()},
        **{f"{of_format}_event": [f"{webhook_id}/{events[of_format]}"] for of_format, webhook_id in ids.items()},
    }


async def _keys(ctx: context.Context, account_id: str) -> str:
    """Keys of all kinds; returns a send with one of them that waits for approval."""
    limits = callers.KeyLimits(
        domains=("shop.example",),
        networks=("192.0.2.0/24",),
        templates=("receipt",),
        recipients_per_day=10,
        credit_budget=10,
        expires_at=ctx.clock() + times.DAY,
        approval_above=1,
    )
    send = frozenset({callers.Scope.SEND})
    await api_keys.create(ctx, account_id, credential_id=None, name="Test", scopes=send, mode=statuses.Mode.TEST)
    await api_keys.create(ctx, account_id, credential_id=None, name="All", scopes=frozenset(callers.Scope))
    key, _ = await api_keys.create(ctx, account_id, credential_id=None, name="Limited", scopes=send, limits=limits)
    return await sample_account.ask_for_approval(ctx, account_id, key.id, "Hello")


async def _operations(ctx: context.Context, account_id: str) -> Things:
    """What operators see: pauses and other limits, holds, a drained and a warming source, jobs, processes, notices."""
    now = ctx.clock()
    await destinations.pause(ctx, "microsoft", reason="blocked", until=now + times.DAY)
    await destinations.pause(ctx, "upstream:relay", reason="maintenance", until=None)
    await destinations.set_limits(ctx, "google", {"connections": 3}, reason="slow", until=None)
    await sources.drain(ctx, "out_1", reason="retired")
    await sources.warm_up(ctx, "out_2")
    await sources.pause(ctx, "bulk_1", provider="google", reason="listed", until=None)
    await holds.hold(ctx, account_id=account_id, domain="museum.example", reason="incident")
    await holds.hold_restored(ctx)
    states = ((processes.RUNNING, "null"), (processes.FINISHED, '{"changed": 3}'))
    jobs = [
        processes.Job(ctx.new_id(identifiers.JOB, now=now), "queue.retry", "all mail", state, 1, 2, found, "", now, now)
        for state, found in states
    ]
    process = processes.Process("mail1-7", "mail1", 7, ("api", "delivery"), "1.2.3", now, now, '{"accepted":2.5}')
    status = processes.QueueStatus("mail1-7", "yahoo out_2", "slowed", "451 slow down", now + times.SECOND, now)
    notice = notice_outbox.NewNotice(
        kind="credits.low", subject=account_id, values={"available": "3"}, account_id=account_id
    )
    async with ctx.store.transaction() as tx:
        for job in jobs:
            await processes.insert_job(tx, job)
        await processes.put(tx, process)
        await processes.put_queues(tx, [status])
        await notice_outbox.write(tx, [notice], now=now, entropy=ctx.entropy)
        key = certificates.key_of(ctx.settings.acme.directory, ctx.settings.acme.names)
        await certificates.claim(tx, key, due_by=now, now=now, until=now)
        await certificates.postpone(tx, key, due_at=now + times.HOUR, error="the CA cannot be reached")
    return {
        "job": [job.id for job in jobs],
        "provider": ["google", "microsoft", "others", "upstream:relay", "mx1.bakery.example"],
        "source": [source.name for source in ctx.settings.sources],
    }


async def _inbound(ctx: context.Context, account_id: str) -> Things:
    """Routes of each kind, and mail that one of them took, with a link to its file."""
    route = await received_rows.route(ctx, account_id)
    forward = await routes.add(ctx, account_id, "sales@example.com", forward_to="owner@shop.example")
    drop = await routes.add(ctx, account_id, "*@example.com", action="drop")
    spam = '{"score": 7.5, "required": 5.0, "is_spam": true}'
    mails = [
        await received_rows.put(ctx, account_id, route_id=route.id),
        await received_rows.put(ctx, account_id, results=received_rows.FAILED, spam=spam, envelope_sender=""),
    ]
    link = attachment_links.make(ctx, account_id, mails[0].id, index=2, expires_at=ctx.clock() + times.DAY)
    return {
        "inbound_route": [route.id, forward.id, drop.id],
        "received_mail": [mail.id for mail in mails],
        "received_file": [f"{mail.id}/2" for mail in mails],
        "resend_file": [f"{mail.id}/{mail.id}_1" for mail in mails],
        "received_link": [link.rpartition("/")[2]],
    }


def _received(inbox: dev_inbox.Inbox) -> Things:
    """Mail in the inbox of `postroad dev`, one with a file."""
    head = "From: x@example.com\r\nTo: y@example.net\r\nMIME-Version: 1.0\r\n"
    file = "Content-Type: text/csv\r\nContent-Disposition: attachment; filename=a.csv\r\n\r\na\r\n"
    parts = f"--b\r\n\r\nHi\r\n--b\r\n{file}--b--\r\n"
    content = f"{head}Content-Type: multipart/mixed; boundary=b\r\n\r\n{parts}".encode()
    with_file = inbox.add(values.MailTransaction("x@example.com", ("y@example.net",), (content,))).id
    return {"received": [sample_account.receive(inbox), with_file], "received_attachment": [f"{with_file}/0"]}
