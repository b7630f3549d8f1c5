"""Signatures of webhooks: the first line is a header, the rest is a body; `SIG` stands for the right digest.

Holds: nothing is raised; who is trusted has shown the right digest of these very octets, with one time that is near;
what `header` writes is trusted, but not with another body, another secret, or later.
"""

from typing import Final

from postroad.protocol.signatures import webhook_signature
from tests.fuzz import target

SECRET: Final = "whsec_of_the_fuzzer"
OTHER: Final = "whsec_of_somebody_else"
NOW: Final = 1_800_000_000


def check(data: bytes) -> None:
    value, _, body = data.partition(b"\n")
    right = webhook_signature.digest(SECRET, body, timestamp=NOW)
    header = value.replace(b"SIG", right.encode()).decode("latin-1")
    why = webhook_signature.why_refused(header, body, secret=SECRET, now=NOW)
    if why is None:
        parts = header.split(",")
        (stamp,) = [part[2:] for part in parts if part.startswith("t=")]
        assert stamp.isdecimal()
        assert abs(int(stamp) - NOW) <= webhook_signature.TOLERANCE_SECONDS
        # `t` may be written in another way than ours; then the digest is over that.
        assert "v1=" + webhook_signature._digest(SECRET, stamp, body) in parts
        assert webhook_signature.why_refused(header, body + b"x", secret=SECRET, now=NOW) is not None
    else:
        assert why.isprintable()
    assert webhook_signature.why_refused(header, body, secret="", now=NOW) is not None
    _check_ours(body)


def _check_ours(body: bytes) -> None:
    ours = webhook_signature.header([OTHER, SECRET], body, timestamp=NOW)
    for secret in (OTHER, SECRET):
        assert webhook_signature.why_refused(ours, body, secret=secret, now=NOW + 300) is None
        assert webhook_signature.why_refused(ours, body, secret=secret, now=NOW + 301) is not None
        assert webhook_signature.why_refused(ours, body + b"\n", secret=secret, now=NOW) is not None
    assert webhook_signature.why_refused(ours, body, secret="whsec_third", now=NOW) is not None


TARGET: Final = target.Target(
    name="signature",
    open=target.plain(check),
    watches=("protocol/signatures/webhook_signature.py",),
    seeds=(
        b't=1800000000,v1=SIG\n{"id":"evt_1"}',
        b"t=1800000000,v1=SIG,v1=SIG,v0=x\n",
        b"t=1800000000,t=1800000000,v1=SIG\nbody",
        b"t=01800000000,v1=SIG\nbody",
        b"t=1799999000,v1=SIG\nbody",
        b" t=1800000000, v1=SIG\nbody",
        b"v1=" + b"0" * 64 + b"\nbody",
    ),
)
