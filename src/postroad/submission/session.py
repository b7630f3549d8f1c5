"""The policy of a submission session (RFC 6409), a method for each verb.

Sending requires authentication. A revoked credential stops working at the next message, even in an open session. 250 is
sent after the commit. Every refusal is an error of `errors.py` with its SMTP codes, error code, message and request id;
a temporary condition is never a 5xx. Any other exception is a bug: it is logged with the request id, and the client
gets `internal_error`. The log never contains a password, an address or content.
"""

import asyncio
import time
from collections.abc import Awaitable
from typing import Final

import msgspec

from postroad import errors
from postroad.concurrency import response_delays
from postroad.model import caller, identifiers, login_throttle, mail
from postroad.network import smtp_policy
from postroad.protocol import address
from postroad.protocol.mime import builder
from postroad.protocol.smtp import server_commands, server_events, values
from postroad.services import context
from postroad.services.acceptance import submit_mime
from postroad.services.auth import authentication
from postroad.submission import mail_options, replies
from postroad.telemetry import logs

MICROSECONDS: Final = 1_000_000
# RFC 4954 section 6.
AUTH_REQUIRED: Final = "530 5.7.0"
AUTH_REQUIRED_TEXT: Final = "Authentication required; use AUTH first"
# RFC 3463 section 3.2: the syntax of a recipient.
BAD_RECIPIENT: Final = "553 5.1.3"


class _Request(msgspec.Struct):
    """One verb, for the log."""

    id: str
    verb: str
    started: float = msgspec.field(default_factory=time.perf_counter)
    message_id: str | None = None
    replayed: bool | None = None


class SubmissionSession(smtp_policy.SessionPolicy):
    """One session."""

    def __init__(
        self,
        ctx: context.Context,
        session: server_events.Session,
        *,
        name: str,
        log: logs.Logger,
        delays: response_delays.ResponseDelays,
    ) -> None:
        self._ctx = ctx
        self._delays = delays
        self._session = session
        self._name = name
        self._log = log
        self._caller: caller.Caller | None = None
        # Of the transaction; each MAIL replaces them.
        self._options = mail_options.NONE
        ctx.metrics.submission_sessions.add()
        ctx.metrics.submission_connections.change(1)

    @property
    def account_id(self) -> str | None:
        """The account of the credential."""
        return self._caller.account_id if self._caller is not None else None

    def closed(self) -> None:
        """The connection is closed."""
        self._ctx.metrics.submission_connections.change(-1)

    # Verbs.

    async def authenticate(self, username: str, password: str) -> values.Reply:
        """AUTH: the username and password of an SMTP credential, as over HTTP."""
        request = self._request("AUTH")
        reply, code = await self._attempt(request, self._log_in(username, password))
        self._ctx.metrics.submission_logins.add(code or replies.ACCEPTED)
        return reply

    def mail(self, sender: str, parameters: server_commands.Parameters) -> smtp_policy.PolicyDecision:
        """MAIL: any sender after authentication; the sender is checked with the message."""
        if not self._is_logged_in():
            return self._require_login()
        try:
            self._options = mail_options.parse(parameters, now=self._ctx.clock())
        except mail_options.BadOption as problem:
            return self._refuse("MAIL", errors.InvalidRequest(str(problem)), smtp_reply=problem.smtp_reply)
        return super().mail(sender, parameters)

    def recipient(self, text: str, parameters: server_commands.Parameters) -> smtp_policy.PolicyDecision:
        """RCPT: an address that mail can be sent to."""
        try:
            address.parse(text)
        except address.AddressError as problem:
            return self._refuse("RCPT", errors.InvalidRequest(str(problem)), smtp_reply=BAD_RECIPIENT)
        return super().recipient(text, parameters)

    async def message(self, transaction: values.MailTransaction) -> values.Reply:
        """The message is complete: accept or refuse it."""
        request = self._request("DATA")
        reply, code = await self._attempt(request, self._submit(request, transaction))
        if code == errors.Unauthorized.code:
            self._log_out()
        self._ctx.metrics.submission_seconds.observe(time.perf_counter() - request.started)
        return reply

    def refused(self, verb: str, reply: values.Reply) -> smtp_policy.PolicyDecision:
        """Reword a refusal by the protocol layer."""
        if not self._is_logged_in():
            return self._require_login()
        error = replies.error_of(reply)
        if replies.is_about_content(reply):
            self._ctx.metrics.refused.add(mail.Source.SMTP.value, error.code)
        return self._refuse(verb, error, smtp_reply=replies.status_of(reply))

    # Authentication.

    def _is_logged_in(self) -> bool:
        return self._caller is not None and self._session.is_authenticated

    def _require_login(self) -> values.Reply:
        return self._refuse("MAIL", errors.Unauthorized(AUTH_REQUIRED_TEXT), smtp_reply=AUTH_REQUIRED)

    async def _log_in(self, username: str, password: str) -> values.Reply:
        self._caller = await authentication.authenticate_password(
            self._ctx, username, password, client_address=self._session.client_address
        )
        return values.Reply(235, "Authentication succeeded", "2.7.0")

    async def _submit(self, request: _Request, transaction: values.MailTransaction) -> values.Reply:
        if self._caller is None:
            raise errors.Unauthorized(AUTH_REQUIRED_TEXT)
        self._delays.note_account(self._caller.account_id)
        who = await authentication.renew(self._ctx, self._caller)
        raw = mail.RawMessage(
            sender=transaction.sender,
            recipients=transaction.recipients,
            content=b"".join(transaction.content),
            trace=self._trace(request, is_utf8=transaction.needs_smtputf8),
            is_utf8=transaction.needs_smtputf8,
            # The protocol layer normalises or refuses any other content.
            has_only_crlf=True,
            send_at=self._options.send_at(self._ctx.clock()),
            expires_in=self._options.expires_in,
        )
        accepted = await submit_mime.submit_mime(self._ctx, who, raw, request_id=request.id)
        request.message_id, request.replayed = accepted.message_id, accepted.replayed
        return values.Reply(250, f"OK: queued as {accepted.message_id}", "2.0.0")

    def _log_out(self) -> None:
        """The credential is no longer valid: the client has to authenticate again."""
        self._caller = None
        self._session.is_authenticated = False

    def _trace(self, request: _Request, *, is_utf8: bool) -> str:
        """The value of `Received` (RFC 5321 section 4.4), without the client's address, for privacy."""
        protocol = replies.protocol_of(is_secure=self._session.is_secure, is_utf8=is_utf8)
        date = builder.format_date(self._ctx.clock() // MICROSECONDS)
        return f"by {self._name} with {protocol} id {request.id}; {date}"

    # Replies and the log.

    def _request(self, verb: str) -> _Request:
        return _Request(self._ctx.new_id(identifiers.REQUEST, now=self._ctx.clock()), verb)

    async def _attempt(self, request: _Request, work: Awaitable[values.Reply]) -> tuple[values.Reply, str | None]:
        """The reply to a verb, and the error code of a refusal."""
        error: errors.PostroadError
        try:
            reply = await work
        except errors.PostroadError as problem:
            error = problem
            self._log_cause(request, problem)
        except Exception:  # noqa: BLE001 - a bug is logged and answered, whatever it is
            self._log.exception("request_failed", request_id=request.id, verb=request.verb)
            error = errors.InternalError("internal error; it has been logged; try again later")
        else:
            self._log_request(request, reply)
            if request.replayed:
                await self._delay(request, response_delays.Pace.REQUESTS)
            return reply, None
        reply = replies.refusal(error, request_id=request.id)
        self._log_request(request, reply, code=error.code)
        await self._delay(request, response_delays.Pace.REFUSALS)
        return reply, error.code

    async def _delay(self, request: _Request, pace: response_delays.Pace) -> None:
        """Wait before a reply: a flood must not take the event loop from others."""
        if self._caller is not None:
            seconds = self._delays.of_account(self._caller.account_id, pace)
        else:
            networks = login_throttle.networks_around(self._session.client_address)
            seconds = self._delays.of_stranger(networks, pace)
        if seconds:
            request.started += seconds  # no time that the service needed
            self.is_delayed = True
            await asyncio.sleep(seconds)
            self.is_delayed = False

    def _refuse(self, verb: str, error: errors.PostroadError, *, smtp_reply: str) -> values.Reply:
        request = self._request(verb)
        reply = replies.refusal(error, request_id=request.id, smtp_reply=smtp_reply)
        self._log_request(request, reply, code=error.code)
        return reply

    def _log_cause(self, request: _Request, error: errors.PostroadError) -> None:
        """Log the private cause of an outage; clients only get the public message."""
        cause = logs.cause_of(error)
        if cause is not None:
            self._log.warning("service_unavailable", request_id=request.id, code=error.code, cause=cause)

    def _log_request(self, request: _Request, reply: values.Reply, *, code: str | None = None) -> None:
        # Unauthenticated and throttled clients could fill the log.
        is_logged_at_info = self._caller is not None or (request.verb == "AUTH" and code != errors.RateLimited.code)
        log = self._log.info if is_logged_at_info else self._log.debug
        log(
            "submission",
            request_id=request.id,
            verb=request.verb,
            reply=replies.status_of(reply),
            code=code,
            message_id=request.message_id,
            replayed=request.replayed,
            duration_ms=round((time.perf_counter() - request.started) * 1000, 3),
            account_id=self._caller.account_id if self._caller else None,
            credential_id=self._caller.credential_id if self._caller else None,
            client_address=self._session.client_address,
        )
