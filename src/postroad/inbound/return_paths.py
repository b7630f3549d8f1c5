"""What the inbound listener takes: mail to a return path of ours, complaints, and nothing else.

A recipient has to carry a genuine token or be the address for complaints, and a complaint counts only with a token in
it. So this is never an open relay, and guessing costs the store nothing. The sender is not asked about: reports come
from the null sender, automatic replies from anybody. 250 follows the commit. Mail that is no report is taken and
dropped, because a refusal would only come back to somebody as one more bounce.
"""

from collections.abc import Sequence
from typing import Final

from postroad import errors
from postroad.network import smtp_listener, smtp_session
from postroad.protocol.reports import arf
from postroad.protocol.smtp import server_commands, server_events, values
from postroad.services import context, return_path
from postroad.services.results import async_bounces, bounce_guard, complaints
from postroad.telemetry import logs

# A report may carry all of the original, in base64 on its way: twice the largest message that can be sent.
MAX_MESSAGE_BYTES: Final = 20 * 1024 * 1024
# Reports go to one return path; another one can have its own transaction.
MAX_RECIPIENTS: Final = 1
_LOGGED_AT_INFO: Final = frozenset({async_bounces.ReportResult.RECORDED, async_bounces.ReportResult.NOT_FINAL})


class ReturnPathPolicy(smtp_session.SessionPolicy):
    """Decides for one session; it remembers nothing between verbs."""

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log

    def recipient(self, address: str, parameters: server_commands.Parameters) -> smtp_session.PolicyDecision:
        """Only a token that we have made, and the address for complaints."""
        if self._message_id(address) is None and not complaints.is_ours(self._ctx, address):
            return values.Reply(550, "there is no such address here", "5.1.1")
        return super().recipient(address, parameters)

    async def message(self, transaction: values.MailTransaction) -> values.Reply:
        """Read it, keep what it says, and take the responsibility for it then."""
        content = b"".join(transaction.content)
        for address in transaction.recipients:
            try:
                await self._process(address, content)
            except errors.PostroadError as problem:
                message_id = self._message_id(address)
                self._log.warning("report_not_kept", message_id=message_id, problem=problem.message)
                return values.Reply(451, "the report cannot be kept now; try again later", "4.3.0")
        return values.Reply(250, "taken", "2.0.0")

    async def _process(self, address: str, content: bytes) -> None:
        message_id = self._message_id(address)
        report = arf.read(content)
        notices: Sequence[bounce_guard.Notice] = ()
        if report is not None:
            complained = await complaints.receive(self._ctx, report, sent_to=address)
            self._log_complaints(report, complained.handled)
            notices = complained.notices
        elif message_id is not None:
            bounced = await async_bounces.receive(self._ctx, message_id, content)
            self._log_reports(message_id, bounced.handled)
            notices = bounced.notices
        else:
            self._log.debug("mail_to_complaints_dropped")
        bounce_guard.report_notices(notices, log=self._log, counted=self._ctx.metrics)

    def _message_id(self, address: str) -> str | None:
        return return_path.read(self._ctx.keys.return_path, address)

    def _log_reports(self, message_id: str, handled: Sequence[async_bounces.Handled]) -> None:
        if not handled:
            self._log.debug("mail_to_return_path_dropped", message_id=message_id)
        for each in handled:
            tell = self._log.info if each.result in _LOGGED_AT_INFO else self._log.debug
            tell(
                "delivery_report",
                message_id=message_id,
                recipient_id=each.recipient.id if each.recipient else None,
                result=each.result,
                action=each.outcome.action,
                status=each.outcome.reply.enhanced,
                reason=each.disposition.reason if each.disposition else None,
                is_gone=each.is_gone,
            )

    def _log_complaints(self, report: arf.FeedbackReport, handled: Sequence[complaints.Handled]) -> None:
        for each in handled:
            tell = self._log.info if each.result is complaints.ReportResult.RECORDED else self._log.debug
            tell(
                "complaint",
                message_id=each.message_id,
                recipient_id=each.recipient_id,
                result=each.result,
                feedback_type=report.kind,
            )


def listener(ctx: context.Context, *, name: str, log: logs.Logger) -> smtp_listener.SmtpListener:
    """The listener of return paths, not started yet; `name` is what it calls itself."""

    def failed(problem: Exception) -> None:
        log.error("inbound_failed", exc_info=problem)

    def make_policy(_session: server_events.Session) -> ReturnPathPolicy:
        return ReturnPathPolicy(ctx, log)

    return smtp_listener.SmtpListener(
        make_policy,
        features=server_events.Features(name=name, message_octets=MAX_MESSAGE_BYTES, recipients=MAX_RECIPIENTS),
        failed=failed,
        limits=smtp_session.ListenerLimits(
            connections=ctx.settings.inbound.connections,
            connections_per_address=ctx.settings.inbound.connections_per_address,
        ),
    )
