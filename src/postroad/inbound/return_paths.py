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
from postroad.protocol import feedback_report
from postroad.protocol.smtp import server_commands, server_events, values
from postroad.services import complaints, context, guarding, late_bounces, return_path
from postroad.telemetry import logs

# A report may carry all of the original, in base64 on its way: twice the largest message that can be sent.
MESSAGE_OCTETS: Final = 20 * 1024 * 1024
# Reports go to one return path; another one can have its own transaction.
RECIPIENTS: Final = 1
_TOLD: Final = frozenset({late_bounces.Fate.RECORDED, late_bounces.Fate.NOT_FINAL})


class ReturnPaths(smtp_session.Policy):
    """Decides for one session; it remembers nothing between verbs."""

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log

    def recipient(self, address: str, parameters: server_commands.Parameters) -> smtp_session.Verdict:
        """Only a token that we have made, and the address for complaints."""
        if self._message_id(address) is None and not complaints.is_ours(self._ctx, address):
            return values.Reply(550, "there is no such address here", "5.1.1")
        return super().recipient(address, parameters)

    async def message(self, envelope: values.Envelope) -> values.Reply:
        """Read it, keep what it says, and take the responsibility for it then."""
        content = b"".join(envelope.content)
        for address in envelope.recipients:
            try:
                await self._take(address, content)
            except errors.PostroadError as problem:
                message_id = self._message_id(address)
                self._log.warning("report_not_kept", message_id=message_id, problem=problem.message)
                return values.Reply(451, "the report cannot be kept now; try again later", "4.3.0")
        return values.Reply(250, "taken", "2.0.0")

    async def _take(self, address: str, content: bytes) -> None:
        message_id = self._message_id(address)
        report = feedback_report.read(content)
        notices: Sequence[guarding.Notice] = ()
        if report is not None:
            complained = await complaints.receive(self._ctx, report, sent_to=address)
            self._tell_complaints(report, complained.handled)
            notices = complained.notices
        elif message_id is not None:
            bounced = await late_bounces.receive(self._ctx, message_id, content)
            self._tell(message_id, bounced.handled)
            notices = bounced.notices
        else:
            self._log.debug("mail_to_complaints_dropped")
        guarding.tell(notices, log=self._log, counted=self._ctx.metrics)

    def _message_id(self, address: str) -> str | None:
        return return_path.read(self._ctx.keys.return_path, address)

    def _tell(self, message_id: str, handled: Sequence[late_bounces.Handled]) -> None:
        if not handled:
            self._log.debug("mail_to_return_path_dropped", message_id=message_id)
        for each in handled:
            tell = self._log.info if each.fate in _TOLD else self._log.debug
            tell(
                "delivery_report",
                message_id=message_id,
                recipient_id=each.addressee.id if each.addressee else None,
                fate=each.fate,
                action=each.outcome.action,
                status=each.outcome.reply.enhanced,
                reason=each.judgement.reason if each.judgement else None,
                is_gone=each.is_gone,
            )

    def _tell_complaints(self, report: feedback_report.FeedbackReport, handled: Sequence[complaints.Handled]) -> None:
        for each in handled:
            tell = self._log.info if each.fate is complaints.Fate.RECORDED else self._log.debug
            tell(
                "complaint",
                message_id=each.message_id,
                recipient_id=each.recipient_id,
                fate=each.fate,
                feedback_type=report.kind,
            )


def listener(ctx: context.Context, *, name: str, log: logs.Logger) -> smtp_listener.SmtpListener:
    """The listener of return paths, not started yet; `name` is what it calls itself."""

    def failed(problem: Exception) -> None:
        log.error("inbound_failed", exc_info=problem)

    def make_policy(_session: server_events.Session) -> ReturnPaths:
        return ReturnPaths(ctx, log)

    return smtp_listener.SmtpListener(
        make_policy,
        features=server_events.Features(name=name, message_octets=MESSAGE_OCTETS, recipients=RECIPIENTS),
        failed=failed,
        limits=smtp_session.Limits(
            connections=ctx.settings.inbound.connections,
            connections_per_address=ctx.settings.inbound.connections_per_address,
        ),
    )
