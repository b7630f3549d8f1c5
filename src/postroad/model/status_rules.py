"""Status and billing of recipients and messages: the tables of interface.md, "States and transitions"."""

from typing import Final

from postroad.model import mail

# What was refused, canceled or not delivered in its time costs nothing; a credit is reserved until the result is final.
BILLING: Final = {
    mail.RecipientStatus.QUEUED: mail.BillingStatus.RESERVED,
    mail.RecipientStatus.DEFERRED: mail.BillingStatus.RESERVED,
    mail.RecipientStatus.DELIVERED: mail.BillingStatus.SETTLED,
    mail.RecipientStatus.FAILED: mail.BillingStatus.SETTLED,
    mail.RecipientStatus.BOUNCED: mail.BillingStatus.RELEASED,
    mail.RecipientStatus.CANCELED: mail.BillingStatus.RELEASED,
    mail.RecipientStatus.EXPIRED: mail.BillingStatus.RELEASED,
}


def message_status(*, recipients: int, delivered: int) -> mail.MessageStatus:
    """The status of a message whose recipients are all final."""
    if delivered == recipients:
        return mail.MessageStatus.DELIVERED
    return mail.MessageStatus.PARTIAL if delivered else mail.MessageStatus.FAILED


def message_billing(*, recipients: int, released: int) -> mail.BillingStatus:
    """The billing of a message whose recipients are all final."""
    return mail.BillingStatus.RELEASED if released == recipients else mail.BillingStatus.SETTLED
