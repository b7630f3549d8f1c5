"""What the submission door decides, a function for each verb: who may send, to whom, and that a message is on disk.

Nobody sends without having logged in. A credential that is revoked stops at the next message, also in a session that
is open. 250 follows the commit. Every refusal is an error of `errors.py`, said with its SMTP reply, its code word, its
sentence and a request id; what is temporary is never a 5xx. An exception that is not a `PostroadError` is a bug: the
log gets it with the request id, the client gets `internal_error`. No line of the log holds a password, an address or a
content.
"""

import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final

from postroad import errors
from postroad.model import caller, identifiers, mail
from postroad.network import smtp_session
from postroad.protocol import address
from postroad.protocol.mime import builder
from postroad.protocol.smtp import server_commands, server_events, values
from postroad.services import context
from postroad.services.acceptance import submit_mime
from postroad.services.auth import authentication
from postroad.submission import replies
from postroad.telemetry import logs

MICROSECONDS: Final = 1_000_000
# RFC 4954 section 6: before AUTH.
AUTH_REQUIRED: Final = "530 5.7.0"
# RFC 3463 section 3.2: the syntax of a recipient.
BAD_RECIPIENT: Final = "553 5.1.3"


@dataclass(slots=True)
class _Request:
    """What one verb asks for, as far as it is known."""

    id: str
    verb: str
    started: float = field(default_factory=time.perf_counter)
    message_id: str | None = None
    replayed: bool | None = None


class SubmissionSession(smtp_session.SessionPolicy):
    """One session."""

    def __init__(self, ctx: context.Context, session: server_events.Session, *, name: str, log: logs.Logger) -> None:
        self._ctx = ctx
        self._session = session
        self._name = name
        self._log = log
        self._caller: caller.Caller | None = None
        ctx.metrics.submission_sessions.add()
        ctx.metrics.submission_connections.change(1)

    def closed(self) -> None:
        """The connection is gone."""
        self._ctx.metrics.submission_connections.change(-1)

    # The verbs.

    async def authenticate(self, username: str, password: str) -> values.Reply:
        """AUTH: a username and a password as they are used over HTTP."""
        request = self._request("AUTH")
        reply, code = await self._attempt(request, self._log_in(username, password))
        self._ctx.metrics.submission_logins.add(code or replies.ACCEPTED)
        return reply

    def mail(self, sender: str, parameters: server_commands.Parameters) -> smtp_session.PolicyDecision:
        """MAIL: anything from somebody who has logged in; the message says whom it is from."""
        return super().mail(sender, parameters) if self._is_logged_in() else self._require_login()

    def recipient(self, text: str, parameters: server_commands.Parameters) -> smtp_session.PolicyDecision:
        """RCPT: an address that mail can be sent to."""
        try:
            address.parse(text)
        except address.AddressError as problem:
            return self._refuse("RCPT", errors.InvalidRequest(str(problem)), smtp_reply=BAD_RECIPIENT)
        return super().recipient(text, parameters)

    async def message(self, transaction: values.MailTransaction) -> values.Reply:
        """The message is complete: accept it, or say why not."""
        request = self._request("DATA")
        reply, code = await self._attempt(request, self._submit(request, transaction))
        if code == errors.Unauthorized.code:
            self._log_out()
        self._ctx.metrics.submission_seconds.observe(time.perf_counter() - request.started)
        return reply

    def refused(self, verb: str, reply: values.Reply) -> smtp_session.PolicyDecision:
        """An address, a recipient more, a size or a content cannot be taken."""
        if not self._is_logged_in():
            return self._require_login()
        error = replies.error_of(reply)
        if replies.is_about_content(reply):
            self._ctx.metrics.refused.add(mail.Source.SMTP.value, error.code)
        return self._refuse(verb, error, smtp_reply=replies.status_of(reply))

    # Who is there.

    def _is_logged_in(self) -> bool:
        return self._caller is not None and self._session.is_authenticated

    def _require_login(self) -> values.Reply:
        return self._refuse("MAIL", errors.Unauthorized("log in with AUTH first"), smtp_reply=AUTH_REQUIRED)

    # What takes its time.

    async def _log_in(self, username: str, password: str) -> values.Reply:
        self._caller = await authentication.authenticate_password(
            self._ctx, username, password, client_address=self._session.client_address
        )
        return values.Reply(235, "logged in", "2.7.0")

    async def _submit(self, request: _Request, transaction: values.MailTransaction) -> values.Reply:
        if self._caller is None:
            raise errors.Unauthorized("log in with AUTH first")
        who = await authentication.renew(self._ctx, self._caller)
        raw = mail.RawMessage(
            sender=transaction.sender,
            recipients=transaction.recipients,
            content=b"".join(transaction.content),
            trace=self._trace(request, is_utf8=transaction.needs_smtputf8),
            is_utf8=transaction.needs_smtputf8,
            # The session refuses every other content.
            has_only_crlf=True,
        )
        accepted = await submit_mime.submit_mime(self._ctx, who, raw, request_id=request.id)
        request.message_id, request.replayed = accepted.message_id, accepted.replayed
        return values.Reply(250, f"queued as {accepted.message_id}", "2.0.0")

    def _log_out(self) -> None:
        """The credential is gone: the session may log in again, and can do nothing else."""
        self._caller = None
        self._session.is_authenticated = False

    def _trace(self, request: _Request, *, is_utf8: bool) -> str:
        """The value of `Received` (RFC 5321 section 4.4). Where the client sits is nobody's business."""
        protocol = replies.protocol_of(is_secure=self._session.is_secure, is_utf8=is_utf8)
        date = builder.format_date(self._ctx.clock() // MICROSECONDS)
        return f"by {self._name} with {protocol} id {request.id}; {date}"

    # Answering.

    def _request(self, verb: str) -> _Request:
        return _Request(self._ctx.new_id(identifiers.REQUEST, now=self._ctx.clock()), verb)

    async def _attempt(self, request: _Request, work: Awaitable[values.Reply]) -> tuple[values.Reply, str | None]:
        """The reply to a verb, and the code word when it is a refusal."""
        error: errors.PostroadError
        try:
            reply = await work
        except errors.PostroadError as problem:
            error = problem
            self._log_cause(request, problem)
        except Exception:  # noqa: BLE001 - the last line of defence: whatever it is, it is logged and answered
            self._log.exception("request_failed", request_id=request.id, verb=request.verb)
            error = errors.InternalError("something went wrong on our side, and was logged; try again later")
        else:
            self._log_request(request, reply)
            return reply, None
        reply = replies.refusal(error, request_id=request.id)
        self._log_request(request, reply, code=error.code)
        return reply, error.code

    def _refuse(self, verb: str, error: errors.PostroadError, *, smtp_reply: str) -> values.Reply:
        request = self._request(verb)
        reply = replies.refusal(error, request_id=request.id, smtp_reply=smtp_reply)
        self._log_request(request, reply, code=error.code)
        return reply

    def _log_cause(self, request: _Request, error: errors.PostroadError) -> None:
        """Why the service cannot serve: clients hear that it is so, and whoever runs it needs to know what to mend."""
        cause = logs.cause_of(error)
        if cause is not None:
            self._log.warning("cannot_serve", request_id=request.id, code=error.code, cause=cause)

    def _log_request(self, request: _Request, reply: values.Reply, *, code: str | None = None) -> None:
        # Strangers could fill the log with what they are refused before they have said who they are, or while slowed.
        is_told = self._caller is not None or (request.verb == "AUTH" and code != errors.RateLimited.code)
        tell = self._log.info if is_told else self._log.debug
        tell(
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
