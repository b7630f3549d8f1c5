"""Reports as common mail servers write them, with names of documentation (RFC 2606), and what they say.

Each comes with its expected outcomes: action, final recipient, original recipient, code and enhanced status of the
reply, and how its words begin.
"""

from typing import NamedTuple


class Expected(NamedTuple):
    action: str
    final: str
    original: str
    code: int
    enhanced: str
    text: str


class Bounce(NamedTuple):
    content: str
    expected: tuple[Expected, ...]


POSTFIX = Bounce(
    """\
Return-Path: <>
Received: by mx1.example.net (Postfix)
\tid 4F7A01C0E5; Mon,  2 Nov 2026 10:00:02 +0000 (UTC)
Date: Mon,  2 Nov 2026 10:00:02 +0000 (UTC)
From: MAILER-DAEMON@mx1.example.net (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
To: bounces+0@example.com
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
\tboundary="33EE11C0E4.1793613602/mx1.example.net"

This is a MIME-encapsulated message.

--33EE11C0E4.1793613602/mx1.example.net
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx1.example.net.

I'm sorry to have to inform you that your message could not be delivered.

--33EE11C0E4.1793613602/mx1.example.net
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx1.example.net
X-Postfix-Queue-ID: 33EE11C0E4
X-Postfix-Sender: rfc822; bounces+0@example.com
Arrival-Date: Mon,  2 Nov 2026 10:00:01 +0000 (UTC)

Final-Recipient: rfc822; ada@example.net
Original-Recipient: rfc822;Ada@example.net
Action: failed
Status: 5.1.1
Remote-MTA: dns; store.example.net
Diagnostic-Code: smtp; 550 5.1.1 <ada@example.net>: Recipient address rejected:
    User unknown in virtual mailbox table

Final-Recipient: rfc822; bob@example.net
Original-Recipient: rfc822;bob@example.net
Action: failed
Status: 5.2.2
Remote-MTA: dns; store.example.net
Diagnostic-Code: smtp; 552 5.2.2 <bob@example.net>: Quota exceeded

--33EE11C0E4.1793613602/mx1.example.net
Content-Description: Undelivered Message
Content-Type: message/rfc822

From: shop@example.com
Subject: Your order

It is on its way.

--33EE11C0E4.1793613602/mx1.example.net--
""",
    (
        Expected("failed", "ada@example.net", "Ada@example.net", 550, "5.1.1", "<ada@example.net>: Recipient address"),
        Expected("failed", "bob@example.net", "bob@example.net", 552, "5.2.2", "<bob@example.net>: Quota exceeded"),
    ),
)

POSTFIX_DELAY = Bounce(
    """\
From: MAILER-DAEMON@mx1.example.net (Mail Delivery System)
Subject: Delayed Mail (still being retried)
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b1"

--b1
Content-Type: text/plain

Your message could not be delivered yet.

--b1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx1.example.net

Final-Recipient: rfc822; ada@example.net
Action: delayed
Status: 4.4.1
Diagnostic-Code: X-Postfix; connect to store.example.net[192.0.2.25]:25:
    Connection timed out
Will-Retry-Until: Sat,  7 Nov 2026 10:00:01 +0000 (UTC)

--b1--
""",
    (Expected("delayed", "ada@example.net", "", 451, "4.4.1", "connect to store.example.net[192.0.2.25]:25:"),),
)

POSTFIX_EXPIRED = Bounce(
    """\
Content-Type: multipart/report; boundary=expired

--expired
Content-Type: message/delivery-status

Reporting-MTA: dns; mx1.example.net

Final-Recipient: rfc822; ada@example.net
Action: failed
Status: 4.4.1
Diagnostic-Code: X-Postfix; delivery temporarily suspended: connect to
    192.0.2.25[192.0.2.25]:25: Connection refused

--expired--
""",
    (Expected("failed", "ada@example.net", "", 451, "4.4.1", "delivery temporarily suspended"),),
)

EXIM = Bounce(
    """\
Return-path: <>
X-Failed-Recipients: ada@example.net
Auto-Submitted: auto-replied
From: Mail Delivery System <Mailer-Daemon@mail.example.net>
To: bounces+0@example.com
References: <1@example.com>
Content-Type: multipart/report; report-type=delivery-status; boundary=1793613602-eximdsn-1804289383
MIME-Version: 1.0
Subject: Mail delivery failed: returning message to sender

--1793613602-eximdsn-1804289383
Content-type: text/plain; charset=us-ascii

This message was created automatically by mail delivery software.

  ada@example.net
    host store.example.net [192.0.2.25]
    SMTP error from remote mail server after RCPT TO:<ada@example.net>:
    550 No such user here

--1793613602-eximdsn-1804289383
Content-type: message/delivery-status

Reporting-MTA: dns; mail.example.net

Action: failed
Final-Recipient: rfc822;ada@example.net
Status: 5.0.0
Remote-MTA: dns; store.example.net
Diagnostic-Code: smtp; 550 No such user here

--1793613602-eximdsn-1804289383
Content-type: text/rfc822-headers

Subject: Your order

--1793613602-eximdsn-1804289383--
""",
    (Expected("failed", "ada@example.net", "", 550, "5.0.0", "No such user here"),),
)

EXCHANGE = Bounce(
    """\
From: <postmaster@example.net>
To: <bounces+0@example.com>
Subject: Undeliverable: Your order
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
\tboundary="9B095B5ADSN=_01DC0A5E7F3A2B0000001A2Bmail.example.net"
X-MS-Exchange-Message-Is-Ndr:

This is a MIME-formatted message.
Portions of this message may be unreadable without a MIME-capable mail program.

--9B095B5ADSN=_01DC0A5E7F3A2B0000001A2Bmail.example.net
Content-Type: multipart/alternative; differences=Content-Type;
\tboundary="9B095B5ADSN=_alternative"

--9B095B5ADSN=_alternative
Content-Type: text/plain; charset="us-ascii"
Content-Transfer-Encoding: quoted-printable

Delivery has failed to these recipients or groups:

--9B095B5ADSN=_alternative
Content-Type: text/html; charset="us-ascii"
Content-Transfer-Encoding: quoted-printable

<html><body>Delivery has failed=</body></html>

--9B095B5ADSN=_alternative--

--9B095B5ADSN=_01DC0A5E7F3A2B0000001A2Bmail.example.net
Content-Type: message/delivery-status

Reporting-MTA: dns;mail.example.net
Received-From-MTA: dns;out.example.com
Arrival-Date: Mon, 2 Nov 2026 10:00:01 +0000

Original-Recipient: rfc822;ada@example.net
Final-Recipient: rfc822;ada@example.net
Action: failed
Status: 5.1.10
Diagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup
X-Display-Name: Ada

--9B095B5ADSN=_01DC0A5E7F3A2B0000001A2Bmail.example.net
Content-Type: message/rfc822

Subject: Your order

--9B095B5ADSN=_01DC0A5E7F3A2B0000001A2Bmail.example.net--
""",
    (Expected("failed", "ada@example.net", "ada@example.net", 550, "5.1.10", "RESOLVER.ADR.RecipientNotFound; Rec"),),
)

GMAIL = Bounce(
    """\
From: Mail Delivery Subsystem <mailer-daemon@googlemail.example>
To: bounces+0@example.com
Auto-Submitted: auto-replied
Subject: Delivery Status Notification (Failure)
Content-Type: multipart/report; boundary="000000000000aa"; report-type=delivery-status
X-Failed-Recipients: ada@example.net

--000000000000aa
Content-Type: multipart/related; boundary="000000000000bb"

--000000000000bb
Content-Type: multipart/alternative; boundary="000000000000cc"

--000000000000cc
Content-Type: text/plain; charset="UTF-8"

** Address not found **

--000000000000cc
Content-Type: text/html; charset="UTF-8"

<b>Address not found</b>

--000000000000cc--
--000000000000bb
Content-Type: image/png; name="icon.png"
Content-Transfer-Encoding: base64
Content-ID: <icon.png>

iVBORw0KGgo=
--000000000000bb--
--000000000000aa
Content-Type: message/delivery-status

Reporting-MTA: dns; googlemail.example
Arrival-Date: Mon, 02 Nov 2026 02:00:01 -0800 (PST)
X-Original-Message-ID: <1@example.com>

Final-Recipient: rfc822; ada@example.net
Action: failed
Status: 5.1.1
Remote-MTA: dns; mx.example.net. (192.0.2.26, the server for the domain example.net.)
Diagnostic-Code: smtp; 550-5.1.1 The email account that you tried to reach does not exist. Please try
 550-5.1.1 double-checking the recipient's email address for typos or
 550 5.1.1 unnecessary spaces.
Last-Attempt-Date: Mon, 02 Nov 2026 02:00:02 -0800 (PST)

--000000000000aa
Content-Type: message/rfc822

Subject: Your order

--000000000000aa--
""",
    (
        Expected(
            "failed",
            "ada@example.net",
            "",
            550,
            "5.1.1",
            "The email account that you tried to reach does not exist. Please try double-checking the recipient's",
        ),
    ),
)

SENDMAIL = Bounce(
    """\
Date: Mon, 2 Nov 2026 10:00:02 GMT
From: Mail Delivery Subsystem <MAILER-DAEMON@relay.example.net>
To: <bounces+0@example.com>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
\tboundary="5A2A02kX012345.1793613602/relay.example.net"
Subject: Returned mail: see transcript for details
Auto-Submitted: auto-generated (failure)

This is a MIME-encapsulated message

--5A2A02kX012345.1793613602/relay.example.net

The original message was received at Mon, 2 Nov 2026 10:00:01 GMT

   ----- The following addresses had permanent fatal errors -----
<ada@example.net>
    (reason: 550 5.7.1 <ada@example.net>... Access denied)

--5A2A02kX012345.1793613602/relay.example.net
Content-Type: message/delivery-status

Reporting-MTA: dns; relay.example.net
Received-From-MTA: DNS; out.example.com
Arrival-Date: Mon, 2 Nov 2026 10:00:01 GMT

Final-Recipient: RFC822; ada@example.net
Action: failed
Status: 5.7.1
Remote-MTA: DNS; store.example.net
Diagnostic-Code: SMTP; 550 5.7.1 <ada@example.net>... Access denied
Last-Attempt-Date: Mon, 2 Nov 2026 10:00:02 GMT

--5A2A02kX012345.1793613602/relay.example.net
Content-Type: text/rfc822-headers

Subject: Your order

--5A2A02kX012345.1793613602/relay.example.net--
""",
    (Expected("failed", "ada@example.net", "", 550, "5.7.1", "<ada@example.net>... Access denied"),),
)
