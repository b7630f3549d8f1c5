"""Reports that are less usual: other actions, other encodings, small breaches of the format, and failures in prose."""

from tests.protocol.reports.bounces import Bounce, Expected


def report(status: str, *, kind: str = "message/delivery-status", encoding: str = "") -> str:
    """A report around the text of its part for machines."""
    encoded = f"\nContent-Transfer-Encoding: {encoding}" if encoding else ""
    return (
        "From: <>\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=delivery-status; boundary=odd\n\n"
        "--odd\nContent-Type: text/plain\n\nFor people.\n\n"
        f"--odd\nContent-Type: {kind}{encoded}\n\n{status}\n--odd--\n"
    )


FORWARDED = Bounce(
    report("""\
Reporting-MTA: dns; forward.example.net

Final-Recipient: rfc822;somebody@example.org
Original-Recipient: rfc822;ada@example.net
Action: failed (the other host said no)
Status: 5.1.1 (bad destination mailbox address)
Diagnostic-Code: smtp;550 5.1.1 no such user
"""),
    (Expected("failed", "somebody@example.org", "ada@example.net", 550, "5.1.1", "no such user"),),
)

RELAYED_AND_MORE = Bounce(
    report("""\
Reporting-MTA: dns; relay.example.net

Final-Recipient: rfc822;ada@example.net
Action: relayed
Status: 2.0.0

Final-Recipient: rfc822;list@example.net
Action: expanded
Status: 2.1.5

Final-Recipient: rfc822;bob@example.net
Action: delivered
Status: 2.1.5
"""),
    (
        Expected("relayed", "ada@example.net", "", 554, "2.0.0", ""),
        Expected("expanded", "list@example.net", "", 554, "2.1.5", ""),
        Expected("delivered", "bob@example.net", "", 554, "2.1.5", ""),
    ),
)

INTERNATIONAL = Bounce(
    report(
        """\
Reporting-MTA: dns; mx.example.net

Final-Recipient: utf-8; gr\\x{FC}n@example.net
Original-Recipient: utf-8; grün@example.net
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 Postfach existiert nicht: grün
""",
        kind="message/global-delivery-status",
    ),
    (Expected("failed", "grün@example.net", "grün@example.net", 550, "5.1.1", "Postfach existiert nicht: grün"),),
)

BASE64 = Bounce(
    # Final-Recipient: rfc822; ada@example.net / Action: failed / Status: 5.1.1
    report(
        "RmluYWwtUmVjaXBpZW50OiByZmM4MjI7IGFkYUBleGFtcGxlLm5ldApBY3Rpb246IGZhaWxlZApT\ndGF0dXM6IDUuMS4xCg==",
        encoding="base64",
    ),
    (Expected("failed", "ada@example.net", "", 554, "5.1.1", ""),),
)

QUOTED_PRINTABLE = Bounce(
    report(
        "Final-Recipient: rfc822;ada@exam=\nple.net\nAction: failed\nStatus: 5.1.1\n"
        "Diagnostic-Code: smtp;550=205.1.1=20gone",
        encoding="quoted-printable",
    ),
    (Expected("failed", "ada@example.net", "", 550, "5.1.1", "gone"),),
)

WITHOUT_TYPES = Bounce(
    report("Final-Recipient: <ada@example.net>\nAction: FAILED\nDiagnostic-Code: 550 5.2.1 mailbox disabled\n"),
    (Expected("failed", "ada@example.net", "", 550, "5.2.1", "mailbox disabled"),),
)

WITHOUT_ACTION = Bounce(
    report("Reporting-MTA: dns; mx.example.net\n\nFinal-Recipient: rfc822;ada@example.net\nStatus: 5.1.1\n"),
    (Expected("failed", "ada@example.net", "", 554, "5.1.1", ""),),
)

WITHOUT_RECIPIENT = Bounce(
    report(
        "Reporting-MTA: dns; mx.example.net\n\nAction: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550-5.1.1 gone\n"
    ),
    (Expected("failed", "", "", 550, "5.1.1", "gone"),),
)

CUT_SHORT = Bounce(
    "Content-Type: multipart/report; boundary=odd\n\n--odd\nContent-Type: message/delivery-status\n\n"
    "Final-Recipient: rfc822;ada@example.net\nAction: failed\nStatus: 5.1.1",
    (Expected("failed", "ada@example.net", "", 554, "5.1.1", ""),),
)

QMAIL = Bounce(
    """\
Return-Path: <>
From: MAILER-DAEMON@mail.example.net
To: bounces+0@example.com
Subject: failure notice

Hi. This is the qmail-send program at mail.example.net.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<ada@example.net>:
Sorry, no mailbox here by that name. (#5.1.1)

<bob@example.net>:
192.0.2.25 does not like recipient.
Remote host said: 550 5.7.1 not today
Giving up on 192.0.2.25.

--- Below this line is a copy of the message.

From: shop@example.com
Subject: Your order

<eve@example.net>:
is only quoted here
""",
    (
        Expected("failed", "ada@example.net", "", 554, "5.1.1", "Sorry, no mailbox here by that name. (#5.1.1)"),
        Expected("failed", "bob@example.net", "", 550, "5.7.1", "not today Giving up on 192.0.2.25."),
    ),
)

EXIM_PROSE = Bounce(
    """\
X-Failed-Recipients: ada@example.net, Bob@example.net, carol@example.net
Auto-Submitted: auto-replied
From: Mail Delivery System <Mailer-Daemon@mail.example.net>
Subject: Mail delivery failed: returning message to sender

This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  ada@example.net
    SMTP error from remote mail server after RCPT TO:<ada@example.net>:
    host store.example.net [192.0.2.25]: 550 5.1.1 User unknown

  bob@example.net
    Unrouteable address

------ This is a copy of the message, including all the headers. ------
""",
    (
        Expected("failed", "ada@example.net", "", 550, "5.1.1", "User unknown"),
        Expected("failed", "Bob@example.net", "", 554, "", "Unrouteable address"),
        Expected("failed", "carol@example.net", "", 554, "", ""),
    ),
)

# Mail that comes to a return path as well, and reports nothing.
NO_REPORTS = {
    "an automatic reply": "Auto-Submitted: auto-replied\nSubject: Out of office\n\nI am back on Monday.\n",
    "a receipt": report(
        "Final-Recipient: rfc822;ada@example.net\nDisposition: automatic-action; displayed\n",
        kind="message/disposition-notification",
    ),
    "a complaint": report("Feedback-Type: abuse\nOriginal-Rcpt-To: ada@example.net\n", kind="message/feedback-report"),
    "a person who quotes qmail": "Subject: help\n\nWhat is this?\n> Hi. This is the qmail-send program\n\n"
    "<a@b.example>:\nno\n",
    "a forwarded report": "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: message/rfc822\n\n"
    + report("Final-Recipient: rfc822;ada@example.net\nAction: failed\nStatus: 5.1.1\n")
    + "\n--x--\n",
    "a report without recipients": report("Reporting-MTA: dns; mx.example.net\nArrival-Date: today\n"),
    "a page of HTML": "Content-Type: text/html\n\nHi. This is the <b>shop</b>\n",
    "nothing": "",
}
