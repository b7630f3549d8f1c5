"""Mail that came in and the records of its sender, from any octets: what it says, its signatures, and SPF and DMARC.

Holds: nothing but the errors of the readers is raised; the bounds hold and every part is somewhere; a signature has
names that can be looked up; a record that is read is read as the same again; a macro makes a name of bounded length.
"""

import contextlib
import ipaddress
from typing import Final

from postroad.protocol.dns import dmarc_record, spf_macros, spf_record
from postroad.protocol.signatures import arc_verification, dkim_verification
from postroad.services.messages import received_mail
from tests import arc_seals, dkim_signatures
from tests.fuzz import target
from tests.protocol.mime import mail_corpus
from tests.services.messages import test_received_mail

NOW: Final = 1_800_000_000
_MAIL: Final = spf_macros.Mail(ipaddress.ip_address("2001:db8::1"), "mx.example", "a.b-c", "sender.example")
_CONTENT: Final = b"From: a@provider.example\r\nTo: b@c.example\r\nSubject: x\r\n\r\nHello\r\n"


def check(data: bytes) -> None:
    test_received_mail.check(received_mail.read(data, sender="", recipients=()), data)
    message = dkim_verification.Message(data)
    for each in message.examined(now=NOW):
        assert all(name == "" or dkim_verification.is_name(name) for name in (each.domain, each.selector))
        if isinstance(each, dkim_verification.Signature):
            dkim_verification.is_proven(each, dkim_signatures.RECORD)
    with contextlib.suppress(arc_verification.ArcError):
        chain = arc_verification.read(message, now=NOW)
        assert chain is None or len(chain.seals) <= arc_verification.MAX_SETS
    _check_record(data.decode("utf-8", "replace"))


def _check_record(text: str) -> None:
    record = dmarc_record.read([text])
    if record is not None:
        assert {record.policy, record.subdomain_policy, record.absent_policy} <= set(dmarc_record.POLICIES)
        assert dmarc_record.organization("a.b.example", {"b.example": record}) in {"a.b.example", "b.example"}
    with contextlib.suppress(spf_record.SpfError):
        for term in spf_record.parse(f"v=spf1 {text}").mechanisms:
            assert spf_record.parse_term(term.written) == term
            name = spf_macros.expand(term.value, _MAIL, domain="sender.example", name="unknown")
            assert len(name) <= spf_macros.MAX_NAME_CHARACTERS


TARGET: Final = target.Target(
    name="received",
    open=target.plain(check),
    watches=(
        "services/messages/received_mail.py",
        "protocol/signatures/arc_verification.py",
        "protocol/signatures/dkim_verification.py",
        "protocol/dns/spf_macros.py",
        "protocol/dns/spf_record.py",
        "protocol/dns/dmarc_record.py",
    ),
    seeds=(
        test_received_mail.REPLY,
        *mail_corpus.MAIL.values(),
        dkim_signatures.sign(_CONTENT),
        arc_seals.chain(_CONTENT, sets=2),
        b"ip4:192.0.2.0/24 a:%{l1r-}.%{d2}/24//64 mx ptr exists:%{ir}.%{v}.%{D} redirect=%{o} -all",
        b"include:%{s}%%%_%-.example future=%{h} ?all",
        b"v=DMARC1; p=reject; sp=none; np=quarantine; adkim=s; aspf=r; psd=n; t=y; rua=mailto:a@example",
    ),
    max_octets=4_000,
    steps=(40_000, 400),
)
