"""What callers prove themselves with, and places in lists: `Authorization`, tokens, API keys, cookies, cursors.

The first line is a text, or the header of a token; the rest is what a token of ours says: it is signed here, so that
what stands behind the signature is read too. Holds: each raises its own refusal or nothing; a signed token that is let
in says exactly what was signed; nothing unsigned is let in.
"""

import base64
import contextlib
import hashlib
import hmac
import json
from typing import Final

from postroad import errors
from postroad.dashboard.framework import cookies
from postroad.keys import installation_keys
from postroad.mail import return_path
from postroad.model.units import identifiers
from postroad.protocol.text import http_values
from postroad.services.people import tokens
from postroad.web import routing
from tests.fuzz import target

KEYS: Final = installation_keys.Keys.derive(b"the key of the fuzzer, of 32 octets or more")
NOW: Final = 1_800_000_000_000_000
MESSAGE: Final = "em_" + "0123456789abcdef" * 2


def check(data: bytes) -> None:
    first, _, rest = data.partition(b"\n")
    text = first.decode("latin-1")
    _check_authorization(text)
    with contextlib.suppress(errors.Unauthorized):
        raise AssertionError(tokens.read(text, KEYS.token, now=NOW))
    _check_signed(first, rest)
    if installation_keys.is_api_key(text):
        assert (
            installation_keys.checksum(text[: -installation_keys.CHECKSUM_CHARACTERS])
            == text[-installation_keys.CHECKSUM_CHARACTERS :]
        )
    with contextlib.suppress(errors.InvalidRequest):
        cursor = identifiers.check("cursor", text, identifiers.MESSAGE)
        assert identifiers.at(identifiers.MESSAGE, identifiers.time_of(cursor, identifiers.MESSAGE)) == cursor[:17]
    recipient_id = f"rcp_{MESSAGE[3:31]}"
    ours = return_path.address(
        KEYS.return_path, message_id=MESSAGE[:31], recipient_id=recipient_id, domain="example.com"
    )
    named = return_path.read(KEYS.return_path, ours)
    assert named is not None
    assert (named.message_id, named.recipient([recipient_id])) == (MESSAGE[:31], recipient_id)
    assert return_path.read(KEYS.return_path, text) is None
    with contextlib.suppress(errors.InvalidRequest):
        cookies.read(routing.Headers([(b"cookie", first)]), cookies.SESSION, is_secure=False)
    notice = cookies.decode_notice(text)
    assert len(notice.text) <= cookies.NOTICE_CHARACTERS
    assert notice.kind in cookies.KINDS


def _check_authorization(text: str) -> None:
    try:
        found = http_values.parse_authorization(text)
    except http_values.AuthorizationError as refusal:
        _check_error_text(str(refusal))
        return
    assert "token=" not in repr(found)
    assert "password=" not in repr(found)
    if isinstance(found, http_values.Basic):
        value = base64.b64encode(f"{found.username}:{found.password}".encode()).decode()
        assert http_values.parse_authorization(f"basic {value}") == found
    else:
        assert http_values.parse_authorization(f"BEARER  {found.token}") == found


def _check_error_text(refusal: str) -> None:
    assert target.is_sayable(refusal, most=200)


def _check_signed(header: bytes, payload: bytes) -> None:
    signed = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (header, payload))
    digest = hmac.digest(KEYS.token, signed, hashlib.sha256)
    token = signed + b"." + base64.urlsafe_b64encode(digest).rstrip(b"=")
    try:
        claims = tokens.read(token.decode(), KEYS.token, now=NOW)
    except errors.Unauthorized:
        return
    said, how = json.loads(payload), json.loads(header)
    assert how["alg"] == "HS256"
    assert "crit" not in how
    assert {"iss", "aud"}.isdisjoint(said)
    assert (said["sub"], said["exp"], said["epoch"]) == (claims.sub, claims.exp, claims.epoch)
    assert claims.exp > NOW // 1_000_000
    assert identifiers.is_identifier(claims.sub, identifiers.USER)


_GOOD: Final = json.dumps(
    {
        "sub": "usr_" + "0" * 28,
        "acc": "acc_" + "0" * 28,
        "role": "owner",
        "iat": 1_799_999_999,
        "exp": 1_800_003_600,
        "jti": "tok_" + "0" * 28,
        "epoch": 0,
    }
).encode()

TARGET: Final = target.Target(
    name="credential",
    open=target.plain(check),
    watches=(
        "services/people/tokens.py",
        "keys/installation_keys.py",
        "mail/return_path.py",
        "protocol/text/http_values.py",
        "model/units/identifiers.py",
        "dashboard/framework/cookies.py",
    ),
    seeds=(
        b'{"alg":"HS256","typ":"JWT"}\n' + _GOOD,
        b'{"alg":"none"}\n' + _GOOD,
        b'{"alg":"HS256","crit":["b64"],"b64":false}\n' + _GOOD,
        b'{"alg":"HS256"}\n' + _GOOD.replace(b"1800003600", b"1e400"),
        b'{"alg":"HS256"}\n' + _GOOD.replace(b'"owner"', b'"owner","aud":"x"'),
        b"Basic dXNlcjpwYXNz\n",
        b"Bearer pr_live_000000000000000000000000000000000000\n",
        b"em_" + b"0" * 28,
        b"bounces+" + b"0" * 52 + b"@example.com",
        b"postroad=x; postroad=y; __Host-postroad=z",
        b"good!%C3%BC%zz",
        b"eyJhbGciOiJub25lIn0.e30.",
    ),
)
