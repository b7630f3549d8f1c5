"""The policy of the inbound listener: it accepts bounces to our return paths, complaints, reports, and operator mail.

A recipient must carry a valid token, be the complaint address, be `postmaster` or `abuse`, or be the address for
reports of a verified domain, and a complaint counts only with a token in it. So this is never an open relay, and only
an address for reports is looked up in the store. Any sender is accepted: reports come from the null sender, automatic
replies from anywhere. 250 is sent after the commit. Mail to a return path that is not a report is accepted and dropped,
because a refusal would create another bounce.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from postroad import context, errors
from postroad.mail import return_path
from postroad.mail.results import async_bounces, complaints, guard_counts
from postroad.network.smtp import content_spool, smtp_server
from postroad.network.tls import server_tls
from postroad.protocol.reports import arf
from postroad.protocol.smtp import server_commands, server_events, values
from postroad.services.domains import received_reports
from postroad.services.operations import certificates, operator_mail
from postroad.telemetry import logs

# A report may contain the whole original, base64-encoded in transit: twice the largest message.
MAX_MESSAGE_BYTES: Final = 20 * 1024 * 1024
# A report goes to one return path; another needs its own transaction.
MAX_RECIPIENTS: Final = 1
_LOGGED_AT_INFO: Final = frozenset({async_bounces.ReportResult.RECORDED, async_bounces.ReportResult.NOT_FINAL})
NO_RECIPIENT: Final = values.Reply(550, "No such recipient here", "5.1.1")
ForwardResult = operator_mail.ForwardResult
FORWARD_REPLIES: Final[Mapping[ForwardResult, values.Reply]] = {
    ForwardResult.FORWARDED: values.Reply(250, "OK: message accepted", "2.0.0"),
    ForwardResult.TOO_LARGE: values.Reply(552, "Message too large for this recipient", "5.3.4"),
    ForwardResult.LOOP: values.Reply(554, "Mail loop detected", "5.4.6"),
    ForwardResult.LIMITED: values.Reply(450, "Too many messages to this recipient today; try again later", "4.7.1"),
}


class ReturnPathPolicy(smtp_server.SessionPolicy):
    """The policy of one session; it keeps no state between verbs."""

    def __init__(
        self,
        ctx: context.Context,
        log: logs.Logger,
        *,
        for_operator: operator_mail.OperatorMail,
        session: server_events.Session,
    ) -> None:
        self._ctx = ctx
        self._log = log
        self._for_operator = for_operator
        self._session = session

    def recipient(self, address: str, parameters: server_commands.Parameters) -> smtp_server.PolicyDecision:
        """Accept only a return path with a valid token, the complaint address, and those of the operator."""
        if self._for_operator.is_for_operator(address):
            if not self._ctx.settings.operator.is_reachable:
                # Neither refused for good nor dropped: the sender is told in the end, or the operator configures it.
                return values.Reply(450, "Mailbox unavailable; try again later", "4.2.1")
        elif domain := received_reports.domain_of(self._ctx, address):
            return self._for_reports(domain)
        elif self._named(address) is None and not complaints.is_ours(self._ctx, address):
            return NO_RECIPIENT
        return super().recipient(address, parameters)

    async def _for_reports(self, domain: str) -> values.Reply:
        return smtp_server.RECIPIENT_OK if await received_reports.has_owner(self._ctx, domain) else NO_RECIPIENT

    async def message(self, transaction: values.MailTransaction) -> values.Reply:
        """Store what the report says, then accept it."""
        content = b"".join(transaction.content)
        for address in transaction.recipients:
            try:
                if self._for_operator.is_for_operator(address):
                    return await self._forward(transaction)
                if domain := received_reports.domain_of(self._ctx, address):
                    await self._report(domain, transaction.sender, content)
                else:
                    await self._process(address, content)
            except errors.PostroadError as problem:
                named = self._named(address)
                message_id = named.message_id if named else None
                self._log.warning("report_not_stored", message_id=message_id, problem=problem.message)
                return values.Reply(451, "The message could not be stored; try again later", "4.3.0")
        return values.Reply(250, "OK: message accepted", "2.0.0")

    async def _forward(self, transaction: values.MailTransaction) -> values.Reply:
        client_address = self._session.client_address
        result = await self._for_operator.forward(transaction, client_address=client_address)
        self._log.info("mail_to_operator", result=result, client_address=client_address)
        return FORWARD_REPLIES[result]

    async def _report(self, domain: str, sender: str, content: bytes) -> None:
        by = received_reports.Sender(self._session.client_address, self._session.hello, sender)
        result = await received_reports.receive(self._ctx, domain, content, sender=by)
        self._log.info("report_received", domain=domain, result=result, client_address=by.client_address)

    async def _process(self, address: str, content: bytes) -> None:
        named = self._named(address)
        report = arf.read(content)
        notices: Sequence[guard_counts.Notice] = ()
        if report is not None:
            complained = await complaints.receive(self._ctx, report, content, sent_to=address)
            self._log_complaint(report, complained)
            notices = complained.notices
        elif named is not None:
            bounced = await async_bounces.receive(self._ctx, named, content)
            self._log_reports(named.message_id, bounced.handled)
            notices = bounced.notices
        else:
            self._log.debug("mail_to_complaints_dropped")
        guard_counts.report_notices(notices, log=self._log, counted=self._ctx.metrics)

    def _named(self, address: str) -> return_path.ReturnPath | None:
        return return_path.named_by(self._ctx.keys, address)

    def _log_reports(self, message_id: str, handled: Sequence[async_bounces.Handled]) -> None:
        if not handled:
            self._log.debug("mail_to_return_path_dropped", message_id=message_id)
        for each in handled:
            log = self._log.info if each.result in _LOGGED_AT_INFO else self._log.debug
            log(
                "delivery_report",
                message_id=message_id,
                recipient_id=each.recipient.id if each.recipient else None,
                result=each.result,
                action=each.outcome.action,
                status=each.outcome.reply.enhanced,
                reason=each.disposition.reason if each.disposition else None,
                is_gone=each.is_gone,
            )

    def _log_complaint(self, report: arf.FeedbackReport, complained: complaints.ProcessedReport) -> None:
        log = self._log.info if complained.result is complaints.ReportResult.RECORDED else self._log.debug
        log(
            "complaint",
            message_id=complained.message_id,
            recipient_id=complained.recipient_id,
            result=complained.result,
            feedback_type=report.kind,
            is_authenticated=complained.is_authenticated,
        )


def listener(
    ctx: context.Context,
    *,
    name: str,
    log: logs.Logger,
    certificate: server_tls.ServerCertificate | None = None,
    spool: content_spool.ContentSpool | None = None,
) -> smtp_server.SmtpListener:
    """The inbound listener, not started yet; `name` is its host name in the banner."""
    for_operator = operator_mail.OperatorMail(ctx, host=name)

    def failed(problem: Exception) -> None:
        log.error("inbound_failed", exc_info=problem)

    def make_policy(session: server_events.Session) -> ReturnPathPolicy:
        return ReturnPathPolicy(ctx, log, for_operator=for_operator, session=session)

    return smtp_server.SmtpListener(
        make_policy,
        features=server_events.Features(
            name=name,
            message_octets=MAX_MESSAGE_BYTES,
            recipients=MAX_RECIPIENTS,
            starttls=certificate is not None,
        ),
        failed=failed,
        limits=smtp_server.ListenerLimits(
            connections=ctx.settings.inbound.connections,
            connections_per_address=ctx.settings.inbound.connections_per_address,
        ),
        spool=spool,
        tls=(lambda: certificate.context) if certificate else None,
        refresh=certificates.refresher(certificate, listener="inbound", log=log),
    )
