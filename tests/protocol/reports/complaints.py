"""Feedback reports as mailbox providers write them, made up for these tests. `TOKEN` stands for the envelope sender."""

from typing import Final

HEAD: Final = """\
From: <feedback@provider.example>
To: <complaints@return.example.com>
Subject: FW: Your order
Date: Fri, 15 Jan 2027 08:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report;
 boundary="part1_13d.2e68ed54_boundary"

"""

# All that RFC 5965 offers, the whole message behind it.
FULL: Final = (
    HEAD
    + """\
--part1_13d.2e68ed54_boundary
Content-Type: text/plain; charset="US-ASCII"
Content-Transfer-Encoding: 7bit

This is an email abuse report for a message received from 192.0.2.1.

--part1_13d.2e68ed54_boundary
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: SomeGenerator/1.0
Version: 1
Original-Mail-From: <TOKEN>
Original-Rcpt-To: <ada@example.net>
Arrival-Date: Fri, 15 Jan 2027 08:00:00 +0000
Reporting-MTA: dns; mail.provider.example
Source-IP: 192.0.2.1
Reported-Domain: example.com
Removal-Recipient: ada@example.net

--part1_13d.2e68ed54_boundary
Content-Type: message/rfc822
Content-Disposition: inline

Return-Path: <bounces+somebody-else@example.org>
Received: from relay.example.com ([192.0.2.1]) by mail.provider.example
From: <shop@example.com>
To: <ada@example.net>
Subject: Your order
Message-ID: <8787KJKJ3K4J3K4J3K4J3.mail@example.com>

It is on its way.
--part1_13d.2e68ed54_boundary--
"""
)

# Only what must be there, with the recipient hidden and only the header returned: the return path is all there is.
REDACTED: Final = (
    HEAD
    + """\
--part1_13d.2e68ed54_boundary
Content-Type: text/plain

Complaint.

--part1_13d.2e68ed54_boundary
Content-Type: message/feedback-report

Feedback-Type: Abuse
User-Agent: Hidden/2
Version: 0.1
Original-Rcpt-To: redacted

--part1_13d.2e68ed54_boundary
Content-Type: text/rfc822-headers

Return-Path: <TOKEN>
From: shop@example.com
To: redacted
Subject: Your order

--part1_13d.2e68ed54_boundary--
"""
)

# Several recipients, folded and with types, in base64 as some gateways do it.
SEVERAL: Final = """\
Feedback-Type:
 fraud
User-Agent: Other/3
Version: 1
Original-Mail-From: rfc822;TOKEN
Original-Rcpt-To: rfc822;ada@example.net
Original-Rcpt-To:
 <bob@example.net>
original-rcpt-to : <ada@example.net>
Reported-URI: http://example.net/
"""

NOT_SPAM: Final = FULL.replace("Feedback-Type: abuse", "Feedback-Type: not-spam")


def with_fields(fields: str, *, encoding: str = "7bit") -> str:
    """A report with these fields, as they stand."""
    return (
        f"{HEAD}--part1_13d.2e68ed54_boundary\nContent-Type: message/feedback-report\n"
        f"Content-Transfer-Encoding: {encoding}\n\n{fields}\n--part1_13d.2e68ed54_boundary--\n"
    )


def report(sample: str, token: str) -> bytes:
    """A sample about the message with this envelope sender, as it comes over SMTP."""
    return sample.replace("TOKEN", token).replace("\n", "\r\n").encode()
