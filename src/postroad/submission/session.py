"""The policy of a submission session (RFC 6409), a method for each verb.

Sending requires authentication. A revoked credential stops working at the next message, even in an open session. 250 is
sent after the commit. Every refusal is an error of `errors.py` with its SMTP codes, error code, message and request id;
a temporary condition is never a 5xx. Any other exception is a bug: it is logged with the request id, and the client
gets `internal_error`. The log never contains a password, an address or content.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

import msgspec

from postroad import context, errors
from postroad.concurrency import fairness
from postroad.mail.accept import submit_mime
from postroad.model.mail import statuses
from postroad.model.people import callers, login_rules
from postroad.model.units import identifiers
from postroad.network.smtp import smtp_server
from postroad.protocol.mime import address, builder
from postroad.protocol.smtp import server_commands, server_events, values
from postroad.services.people import authentication
from postroad.submission import mail_options
from postroad.telemetry import logs

# Replies of the submission listener: errors as SMTP replies, and the protocol name in `Received`.
#
# A refusal reads `550 5.7.1 forbidden: what is wrong (req_…)`: the codes of its error class, its error code, its
# message and the request id, which is in the log too.

# The metrics label for a login that was not refused.
ACCEPTED: Final = "accepted"
# Content refused by the protocol layer: too large, with a bare CR, or while there is no room or time for it. Its other
# refusals are about addresses.
_TOO_LARGE: Final = 552
_BARE_CR: Final = 550
_BUSY: Final = frozenset({"4.3.1", "4.3.2"})
# Long enough for other messages to be accepted.
_BUSY_RETRY_SECONDS: Final = 60
# RFC 3848 section 3 and RFC 6531 section 4.3; all senders are authenticated.
_PROTOCOLS: Final[Mapping[tuple[bool, bool], str]] = {
    (False, False): "ESMTPA",
    (True, False): "ESMTPSA",
    (False, True): "UTF8SMTPA",
    (True, True): "UTF8SMTPSA",
}


def refusal(error: errors.PostroadError, *, request_id: str, smtp_reply: str | None = None) -> values.Reply:
    """The reply for an error; `smtp_reply` replaces the codes of its class."""
    code, _, enhanced = (smtp_reply or error.smtp_reply).partition(" ")
    # Error messages refer to `Retry-After`, a header of HTTP.
    wait = "" if error.retry_after is None else f"; Retry-After: {error.retry_after}"
    return values.Reply(int(code), f"{error.code}: {error.message}{wait} ({request_id})", enhanced)


def status_of(reply: values.Reply) -> str:
    """The codes of a reply, in the form of `PostroadError.smtp_reply`."""
    return f"{reply.code} {reply.enhanced}"


def error_of(reply: values.Reply) -> errors.PostroadError:
    if reply.enhanced in _BUSY:
        return errors.TemporaryFailure(reply.text, retry_after=_BUSY_RETRY_SECONDS)
    kind = errors.PayloadTooLarge if reply.code == _TOO_LARGE else errors.InvalidRequest
    return kind(reply.text)


def is_about_content(reply: values.Reply) -> bool:
    """Whether a refusal by the protocol layer is about the content, not an address."""
    return reply.code in (_TOO_LARGE, _BARE_CR) or reply.enhanced in _BUSY


def protocol_of(*, is_secure: bool, is_utf8: bool) -> str:
    return _PROTOCOLS[is_secure, is_utf8]


MICROSECONDS: Final = 1_000_000
LOGGED_IN: Final = values.Reply(235, "Authentication succeeded", "2.7.0")
# RFC 4954 section 6.
AUTH_REQUIRED: Final = "530 5.7.0"
AUTH_REQUIRED_TEXT: Final = "Authentication required; use AUTH first"
# RFC 3463 section 3.2: the syntax of a recipient.
BAD_RECIPIENT: Final = "553 5.1.3"


class _Request(msgspec.Struct):
    id: str
    verb: str
    started: float = msgspec.field(default_factory=time.perf_counter)
    message_id: str | None = None
    replayed: bool | None = None


class SubmissionSession(smtp_server.SessionPolicy):
    def __init__(
        self,
        ctx: context.Context,
        session: server_events.Session,
        *,
        name: str,
        log: logs.Logger,
        delays: fairness.ResponseDelays,
    ) -> None:
        self._ctx = ctx
        self._delays = delays
        self._session = session
        self._name = name
        self._log = log
        self._caller: callers.Caller | None = None
        # Of the transaction; each MAIL replaces them.
        self._options = mail_options.NONE
        ctx.metrics.submission_sessions.add()
        ctx.metrics.submission_connections.change(1)

    @property
    def account_id(self) -> str | None:
        return self._caller.account_id if self._caller is not None else None

    def closed(self) -> None:
        self._ctx.metrics.submission_connections.change(-1)

    # Verbs.

    async def authenticate(self, username: str, password: str) -> values.Reply:
        """AUTH: the username and password of an SMTP credential, as over HTTP."""
        request = self._request("AUTH", self._ctx.clock())
        code: str | None = None
        try:
            self._caller = await authentication.authenticate_password(
                self._ctx, username, password, client_address=self._session.client_address
            )
        except Exception as problem:  # noqa: BLE001 - answered, whatever it is
            reply, code = await self._fail(request, problem)
        else:
            reply = LOGGED_IN
            self._log_request(request, reply)
        self._ctx.metrics.submission_logins.add(code or ACCEPTED)
        return reply

    def mail(self, sender: str, parameters: server_commands.Parameters) -> smtp_server.PolicyDecision:  # noqa: ARG002
        """MAIL: any sender after authentication; the sender is checked with the message."""
        if not self._is_logged_in():
            return self._require_login()
        try:
            self._options = mail_options.parse(parameters, now=self._ctx.clock())
        except mail_options.BadOption as problem:
            return self._refuse("MAIL", errors.InvalidRequest(str(problem)), smtp_reply=problem.smtp_reply)
        return smtp_server.SENDER_OK

    def recipient(self, text: str, parameters: server_commands.Parameters) -> smtp_server.PolicyDecision:  # noqa: ARG002
        try:
            address.parse(text)
        except address.AddressError as problem:
            return self._refuse("RCPT", errors.InvalidRequest(str(problem)), smtp_reply=BAD_RECIPIENT)
        return smtp_server.RECIPIENT_OK

    async def message(self, transaction: values.MailTransaction) -> values.Reply:
        now = self._ctx.clock()
        request = self._request("DATA", now)
        try:
            reply = await self._submit(request, transaction, now=now)
        except Exception as problem:  # noqa: BLE001 - answered, whatever it is
            reply, code = await self._fail(request, problem)
            if code == errors.Unauthorized.code:
                self._log_out()
        else:
            self._log_request(request, reply)
            if request.replayed:
                await self._delay(request, fairness.Pace.REQUESTS)
        self._ctx.metrics.submission_seconds.observe(time.perf_counter() - request.started)
        return reply

    def refused(self, verb: str, reply: values.Reply) -> smtp_server.PolicyDecision:
        """Reword a refusal by the protocol layer."""
        if not self._is_logged_in():
            return self._require_login()
        error = error_of(reply)
        if is_about_content(reply):
            self._ctx.metrics.refused.add(statuses.Source.SMTP.value, error.code)
        return self._refuse(verb, error, smtp_reply=status_of(reply))

    # Authentication.

    def _is_logged_in(self) -> bool:
        return self._caller is not None and self._session.is_authenticated

    def _require_login(self) -> values.Reply:
        return self._refuse("MAIL", errors.Unauthorized(AUTH_REQUIRED_TEXT), smtp_reply=AUTH_REQUIRED)

    async def _submit(self, request: _Request, transaction: values.MailTransaction, *, now: int) -> values.Reply:
        if self._caller is None:
            raise errors.Unauthorized(AUTH_REQUIRED_TEXT)
        self._delays.note_account(self._caller.account_id)
        who = await authentication.renew(self._ctx, self._caller)
        raw = statuses.RawMessage(
            sender=transaction.sender,
            recipients=transaction.recipients,
            content=b"".join(transaction.content),
            trace=self._trace(request, now=now, is_utf8=transaction.needs_smtputf8),
            is_utf8=transaction.needs_smtputf8,
            # The protocol layer normalises or refuses any other content.
            has_only_crlf=True,
            send_at=self._options.send_at(now),
            expires_in=self._options.expires_in,
        )
        accepted = await submit_mime.submit_mime(self._ctx, who, raw, request_id=request.id)
        request.message_id, request.replayed = accepted.message_id, accepted.replayed
        return values.Reply(250, f"OK: queued as {accepted.message_id}", "2.0.0")

    def _log_out(self) -> None:
        """The credential is no longer valid: the client has to authenticate again."""
        self._caller = None
        self._session.is_authenticated = False

    def _trace(self, request: _Request, *, now: int, is_utf8: bool) -> str:
        """The value of `Received` (RFC 5321 section 4.4), without the client's address, for privacy."""
        protocol = protocol_of(is_secure=self._session.is_secure, is_utf8=is_utf8)
        date = builder.format_date(now // MICROSECONDS)
        return f"by {self._name} with {protocol} id {request.id}; {date}"

    # Replies and the log.

    def _request(self, verb: str, now: int) -> _Request:
        return _Request(self._ctx.new_id(identifiers.REQUEST, now=now), verb)

    async def _fail(self, request: _Request, problem: Exception) -> tuple[values.Reply, str]:
        """The reply to a refusal or a bug, and its error code."""
        error = problem
        if isinstance(error, errors.PostroadError):
            self._log_cause(request, error)
        else:
            self._log.error("request_failed", request_id=request.id, verb=request.verb, exc_info=problem)
            error = errors.InternalError("internal error; it has been logged; try again later")
        reply = refusal(error, request_id=request.id)
        self._log_request(request, reply, code=error.code)
        await self._delay(request, fairness.Pace.REFUSALS)
        return reply, error.code

    async def _delay(self, request: _Request, pace: fairness.Pace) -> None:
        """Wait before a reply: a flood must not take the event loop from others."""
        if self._caller is not None:
            seconds = self._delays.of_account(self._caller.account_id, pace)
        else:
            networks = login_rules.networks_around(self._session.client_address)
            seconds = self._delays.of_stranger(networks, pace)
        if seconds:
            request.started += seconds  # no time that the service needed
            self.is_delayed = True
            await asyncio.sleep(seconds)
            self.is_delayed = False

    def _refuse(self, verb: str, error: errors.PostroadError, *, smtp_reply: str) -> values.Reply:
        request = self._request(verb, self._ctx.clock())
        reply = refusal(error, request_id=request.id, smtp_reply=smtp_reply)
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
            reply=status_of(reply),
            code=code,
            message_id=request.message_id,
            replayed=request.replayed,
            duration_ms=round((time.perf_counter() - request.started) * 1000, 3),
            account_id=self._caller.account_id if self._caller else None,
            credential_id=self._caller.credential_id if self._caller else None,
            client_address=self._session.client_address,
        )
