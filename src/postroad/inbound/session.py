"""The policy of an inbound session: it accepts bounces, complaints, reports, mail to the operator and mail to routes.

A recipient must carry a valid token, be the complaint address, be `postmaster` or `abuse` of this host, be the address
for reports of a verified domain, or have a route of an account. A complaint counts only with a token in it. So this is
never an open relay. What cannot be an address does not reach the store, and a session that guesses addresses is closed
soon. Any envelope sender is accepted: bounces come from the null sender, automatic replies from anywhere. 250 is sent
after the commit. What is refused is refused in the session, so this host never bounces to a stranger. Mail to a return
path that is not a report is accepted and dropped, because a refusal would create another bounce.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from postroad import context, errors
from postroad.mail import return_path
from postroad.mail.results import async_bounces, complaints, guard_counts
from postroad.network.smtp import content_spool, smtp_server
from postroad.network.tls import server_tls
from postroad.protocol.mime import address
from postroad.protocol.reports import arf
from postroad.protocol.smtp import server_commands, server_events, values
from postroad.services.domains import received_reports
from postroad.services.inbound import receive, routes
from postroad.services.operations import certificates, operator_mail
from postroad.storage.mail import received
from postroad.telemetry import logs

# A report may contain the whole original, base64-encoded in transit: twice the largest message.
MAX_MESSAGE_BYTES: Final = 20 * 1024 * 1024
# A report goes to one return path, and a mail to a route has one result; another recipient needs its own transaction.
MAX_RECIPIENTS: Final = 1
# Of a session: some mistyped addresses of a mailing list.
MAX_UNKNOWN: Final = 10
_LOGGED_AT_INFO: Final = frozenset({async_bounces.ReportResult.RECORDED, async_bounces.ReportResult.NOT_FINAL})
_TAKEN: Final = values.Reply(250, "OK: message accepted", "2.0.0")
ForwardResult = operator_mail.ForwardResult
FORWARD_REPLIES: Final[Mapping[ForwardResult, values.Reply]] = {
    ForwardResult.FORWARDED: _TAKEN,
    ForwardResult.TOO_LARGE: values.Reply(552, "Message too large for this recipient", "5.3.4"),
    ForwardResult.LOOP: values.Reply(554, "Mail loop detected", "5.4.6"),
    ForwardResult.LIMITED: values.Reply(450, "Too many messages to this recipient today; try again later", "4.7.1"),
}
ROUTE_REPLIES: Final[Mapping[receive.Result, values.Reply]] = {
    receive.Result.STORED: _TAKEN,
    receive.Result.DUPLICATE: _TAKEN,
    receive.Result.FORWARDED: _TAKEN,
    receive.Result.DROPPED: _TAKEN,
    receive.Result.LOOP: values.Reply(554, "Mail loop detected", "5.4.6"),
    receive.Result.TOO_LARGE: values.Reply(552, "Message too large for this recipient", "5.3.4"),
    receive.Result.SUSPENDED: values.Reply(550, "Mailbox disabled", "5.2.1"),
    receive.Result.OVER_QUOTA: values.Reply(452, "Mailbox has received too much today; try again later", "4.2.2"),
    receive.Result.OVER_NETWORK_QUOTA: values.Reply(
        450, "Too many messages from your network to this recipient today; try again later", "4.7.1"
    ),
    receive.Result.NOT_FORWARDED: values.Reply(450, "Mailbox unavailable; try again later", "4.2.1"),
    receive.Result.BUSY: values.Reply(451, "Too many messages at the same time; try again later", "4.3.2"),
}
_NOT_STORED: Final = values.Reply(451, "The message could not be stored; try again later", "4.3.0")


class InboundSession(smtp_server.SessionPolicy):
    """The policy of one session."""

    def __init__(
        self,
        ctx: context.Context,
        log: logs.Logger,
        *,
        for_operator: operator_mail.OperatorMail,
        receiver: receive.Receiver,
        session: server_events.Session,
    ) -> None:
        self._ctx = ctx
        self._log = log
        self._for_operator = for_operator
        self._receiver = receiver
        self._session = session
        self._unknown = 0
        # Of the transaction, by recipient.
        self._routes: dict[str, received.Route] = {}

    def mail(self, sender: str, parameters: server_commands.Parameters) -> smtp_server.PolicyDecision:
        self._routes.clear()
        return super().mail(sender, parameters)

    def recipient(self, text: str, parameters: server_commands.Parameters) -> smtp_server.PolicyDecision:
        """Accept only a return path with a valid token, the complaint address, those of the operator, and routes."""
        if self._for_operator.is_for_operator(text):
            if not self._ctx.settings.operator.is_reachable:
                # Neither refused for good nor dropped: the sender is told in the end, or the operator configures it.
                return values.Reply(450, "Mailbox unavailable; try again later", "4.2.1")
        elif domain := received_reports.domain_of(self._ctx, text):
            return self._for_reports(domain)
        elif self._named(text) is None and not complaints.is_ours(self._ctx, text):
            return self._routed(text)
        return super().recipient(text, parameters)

    async def _for_reports(self, domain: str) -> values.Reply:
        has_owner = await received_reports.has_owner(self._ctx, domain)
        return smtp_server.RECIPIENT_OK if has_owner else self._refuse_unknown()

    def _routed(self, text: str) -> smtp_server.PolicyDecision:
        try:
            return self._find_route(text, address.parse(text))
        except address.AddressError:
            return self._refuse_unknown()

    async def _find_route(self, text: str, mailbox: address.Mailbox) -> values.Reply:
        async with self._ctx.store.reading() as tx:
            match = await received.matching(tx, routes.keys_of(mailbox))
        if match is None:
            return self._refuse_unknown()
        if not match.is_active:
            return ROUTE_REPLIES[receive.Result.SUSPENDED]
        self._routes[text] = match.route
        return smtp_server.RECIPIENT_OK

    def _refuse_unknown(self) -> values.Reply:
        self._unknown += 1
        if self._unknown > MAX_UNKNOWN:
            return values.Reply(421, "Too many unknown recipients", "4.7.0")
        return values.Reply(550, "No such recipient here", "5.1.1")

    async def message(self, transaction: values.MailTransaction) -> values.Reply:
        """Store what the report says, then accept it."""
        content = b"".join(transaction.content)
        for recipient in transaction.recipients:
            try:
                if (route := self._routes.get(recipient)) is not None:
                    return await self._receive(route, recipient, content, transaction)
                if self._for_operator.is_for_operator(recipient):
                    return await self._forward(transaction)
                if domain := received_reports.domain_of(self._ctx, recipient):
                    await self._report(domain, transaction.sender, content)
                else:
                    await self._process(recipient, content)
            except errors.PostroadError as problem:
                named = self._named(recipient)
                message_id = named.message_id if named else None
                self._log.warning("report_not_stored", message_id=message_id, problem=problem.message)
                return _NOT_STORED
        return _TAKEN

    async def _receive(
        self, route: received.Route, recipient: str, content: bytes, transaction: values.MailTransaction
    ) -> values.Reply:
        session = self._session
        kind = "UTF8SMTP" if transaction.needs_smtputf8 else "ESMTP" if session.is_extended else "SMTP"
        arrival = receive.Arrival(
            route=route,
            sender=transaction.sender,
            recipient=recipient,
            content=content,
            client_address=session.client_address,
            helo=session.hello,
            protocol=kind + "S" * session.is_secure,
        )
        result = await self._receiver.receive(arrival)
        self._log.info(
            "mail_received",
            result=result,
            account_id=route.account_id,
            route_id=route.id,
            client_address=session.client_address,
        )
        return ROUTE_REPLIES[result]

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
    receiver = receive.Receiver(ctx, host=name)

    def failed(problem: Exception) -> None:
        log.error("inbound_failed", exc_info=problem)

    def make_policy(session: server_events.Session) -> InboundSession:
        return InboundSession(ctx, log, for_operator=for_operator, receiver=receiver, session=session)

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
