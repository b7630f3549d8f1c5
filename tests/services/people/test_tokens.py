"""Tokens: only ours, only HS256, only while valid; whatever else is presented is unauthorized and nothing worse."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import jwt
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import context, errors
from postroad.model.units import identifiers
from postroad.services.people import tokens
from postroad.storage.people import users

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND + 123_456
KEY = hashlib.sha256(b"a key of the tests").digest()
USER = users.User(
    id=identifiers.make(identifiers.USER, now=NOW, entropy=b"\1" * 7),
    account_id=identifiers.make(identifiers.ACCOUNT, now=NOW, entropy=b"\2" * 7),
    email="owner@example.com",
    role="owner",
    tokens_valid_from=NOW - 5,
    disabled_at=None,
    created_at=NOW - 5,
)
TOKEN_ID = identifiers.make(identifiers.TOKEN, now=NOW, entropy=b"\3" * 7)
CLAIMS: dict[str, Any] = {
    "sub": USER.id,
    "acc": USER.account_id,
    "role": "owner",
    "iat": NOW // SECOND,
    "exp": NOW // SECOND + 3600,
    "jti": TOKEN_ID,
    "epoch": USER.tokens_valid_from,
}


def encoded(part: object) -> str:
    octets = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(octets).decode().rstrip("=")


def signed(header: object, payload: object, *, key: bytes = KEY, digest: str = "sha256") -> str:
    """A token with a right signature, whatever it says; made without the library under test."""
    text = f"{encoded(header)}.{encoded(payload)}"
    return f"{text}.{encoded(hmac.digest(key, text.encode(), digest))}"


def token(header: Mapping[str, Any] | None = None, /, **changes: Any) -> str:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not ...}
    return signed({"alg": "HS256", "typ": "JWT", **(header or {})}, claims)


def is_refused(text: str, *, now: int = NOW) -> bool:
    with pytest.raises(errors.Unauthorized) as refusal:
        tokens.read(text, KEY, now=now)
    return refusal.value.message == tokens.refusal().message


def test_a_token_says_what_was_put_into_it_and_not_a_secret_more() -> None:
    claims = tokens.claims_for(USER, now=NOW, seconds=3600, token_id=TOKEN_ID)
    text = tokens.sign(claims, KEY)
    assert tokens.read(text, KEY, now=NOW) == claims
    assert jwt.decode(text, options={"verify_signature": False}) == CLAIMS
    assert jwt.get_unverified_header(text) == {"alg": "HS256", "typ": "JWT"}


def test_a_token_lives_until_its_last_second() -> None:
    claims = tokens.read(token(), KEY, now=CLAIMS["exp"] * SECOND - 1)
    assert (claims.sub, claims.acc, claims.jti) == (USER.id, USER.account_id, TOKEN_ID)
    assert claims.expires_at == (NOW // SECOND + 3600) * SECOND
    assert is_refused(token(), now=CLAIMS["exp"] * SECOND)


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "nOnE", "NONE", "", "hs256", "HS384", "RS256", None, 1, ["HS256"]]
)
def test_no_other_algorithm_is_accepted(algorithm: object) -> None:
    assert is_refused(token({"alg": algorithm}))


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256"])
def test_a_token_without_a_signature_is_refused(algorithm: str) -> None:
    head = f"{encoded({'alg': algorithm, 'typ': 'JWT'})}.{encoded(CLAIMS)}"
    assert is_refused(f"{head}.")
    assert is_refused(head)


def test_another_key_or_hash_is_refused_even_if_the_token_brings_the_key_along() -> None:
    evil = b"a key that an attacker chose for us!"
    assert is_refused(signed({"alg": "HS256"}, CLAIMS, key=evil))
    assert is_refused(signed({"alg": "HS256", "jwk": {"kty": "oct", "k": encoded(evil)}}, CLAIMS, key=evil))
    assert is_refused(signed({"alg": "HS512"}, CLAIMS, digest="sha512"))


@pytest.mark.parametrize(
    "header",
    [
        {"kid": "../../../../dev/null"},
        {"kid": "' OR 1=1 --"},
        {"jku": "https://attacker.example/keys"},
        {"x5u": "https://attacker.example/cert"},
        {"jwk": {"kty": "oct", "k": "AA"}},
    ],
)
def test_what_a_header_says_about_keys_changes_nothing(header: dict[str, Any]) -> None:
    assert tokens.read(token(header), KEY, now=NOW).sub == USER.id


@pytest.mark.parametrize(
    "header",
    [
        *({"crit": crit} for crit in (["x"], ["exp"], ["b64"], [], None, "x")),
        {"crit": ["b64"], "b64": False},
        {"crit": ["b64"], "b64": True},
        {"b64": False},
    ],
)
def test_a_critical_extension_and_a_detached_payload_are_refused(header: dict[str, Any]) -> None:
    assert is_refused(token(header))


# Whose account it is and which role it has is for the store to say: there, any text passes.
WRONG_VALUES: list[Any] = [..., None, [], {}, True, 1.5, "", "1"]
WEIRD_TIMES: list[Any] = ["1800003600", 1_800_003_600.0, 1e30, 10**18, 10**400, -1, 0, float("inf"), float("nan")]
WRONG = [
    *(
        (claim, value)
        for claim in sorted(CLAIMS)
        for value in WRONG_VALUES
        if not (claim in {"acc", "role"} and isinstance(value, str))
    ),
    *(("exp", value) for value in WEIRD_TIMES),
    # A token for somebody else, and ids of another shape, which must not reach the store.
    *((claim, value) for claim in ("iss", "aud") for value in ("postroad", "", ["postroad"], None)),
    *((claim, value) for claim in ("sub", "jti") for value in ("usr_1", "tok_\0", "' OR 1=1 --", "x" * 3000)),
]


@pytest.mark.parametrize("claim, value", WRONG)
def test_every_claim_is_required_and_of_its_type(claim: str, value: object) -> None:
    assert is_refused(token(**{claim: value}))


@pytest.mark.parametrize("claim", ["iat", "nbf"])
def test_a_token_from_the_future_is_refused_beyond_what_clocks_differ(claim: str) -> None:
    second = NOW // SECOND
    assert tokens.read(token(**{claim: second + 60}), KEY, now=NOW).sub == USER.id
    assert is_refused(token(**{claim: second + 61}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "\xff.\xff.\xff",
        "half \ud800 pair",
        "=.=.=",
        signed("a string", CLAIMS),
        signed([], CLAIMS),
        signed(None, CLAIMS),
        signed({"alg": "HS256"}, "a string"),
        signed({"alg": "HS256"}, []),
        signed({"alg": "HS256"}, b"\xff\xfe"),
        signed({"alg": "HS256"}, b'{"exp": NaN}'),
        signed({"alg": "HS256"}, b"[" * 100_000),
        signed(b"[" * 100_000, CLAIMS),
        signed(b'{"alg":' * 50_000, CLAIMS),
        signed(b"\xff", CLAIMS),
        signed({"alg": "HS256"}, b'{"exp": ' + b"9" * 10_000 + b"}"),
    ],
)
def test_garbage_is_refused(text: str) -> None:
    assert is_refused(text)


def test_a_changed_character_anywhere_is_refused() -> None:
    text = token()
    for place in range(0, len(text), 7):
        other = "A" if text[place] != "A" else "B"
        assert is_refused(text[:place] + other + text[place + 1 :])


@given(text=st.text(max_size=200))
def test_no_text_does_anything_but_be_refused(text: str) -> None:
    assert is_refused(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(header=JSON, payload=JSON)
def test_no_signed_document_does_anything_but_be_refused(header: object, payload: object) -> None:
    assert is_refused(signed(header, payload))


@given(changes=st.dictionaries(st.sampled_from([*CLAIMS, "nbf", "iss", "aud"]), JSON, min_size=1))
def test_no_odd_claim_does_anything_but_pass_or_be_refused(changes: dict[str, object]) -> None:
    try:
        claims = tokens.read(token(**changes), KEY, now=NOW)
    except errors.Unauthorized:
        return
    assert claims.exp > NOW // SECOND
    assert claims.sub == USER.id


# What a browser keeps for us is read only if we wrote it, for this purpose.


class Value(msgspec.Struct, frozen=True):
    name: str


class Other(msgspec.Struct, frozen=True):
    number: int


async def test_a_value_is_read_for_its_purpose_only(ctx: context.Context) -> None:
    text = tokens.write_value(ctx, Value("ä"), purpose="view")
    assert tokens.read_value(ctx, text, Value, purpose="view") == Value("ä")
    assert tokens.read_value(ctx, text, Value, purpose="passkey") is None
    # Of another version of the service.
    assert tokens.read_value(ctx, text, Other, purpose="view") is None


async def test_what_we_did_not_write_is_not_read(ctx: context.Context) -> None:
    text = tokens.write_value(ctx, Value("mine"), purpose="view")
    theirs = tokens.write_value(ctx, Value("theirs"), purpose="view")
    for forged in ("", ".", "é.é", text[:-1], text.upper(), theirs.partition(".")[0] + "." + text.partition(".")[2]):
        assert tokens.read_value(ctx, forged, Value, purpose="view") is None
