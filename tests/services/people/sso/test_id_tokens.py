"""What an ID token must prove, and every lie that must not pass."""

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from postroad.model.people import login_rules
from postroad.services.people import sso_providers
from tests import oidc_provider

NOW = 1_800_000_000
ISSUER = "https://login.corp.example"
EXPECTED = sso_providers.Expected(ISSUER, "postroad", "a nonce")
KEYS = [oidc_provider.jwk(oidc_provider.RSA_KEY, kid="one")]
PUBLIC_PEM = oidc_provider.RSA_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
HONEST: dict[str, Any] = {
    "iss": ISSUER,
    "sub": "7",
    "aud": "postroad",
    "exp": NOW + 300,
    "iat": NOW,
    "nonce": "a nonce",
    "email": "jo@corp.example",
    "email_verified": True,
}


def token(claims: dict[str, Any], *, key: Any = oidc_provider.RSA_KEY, alg: str = "RS256", **header: Any) -> str:  # noqa: ANN401 - any key
    payload = {name: value for name, value in (HONEST | claims).items() if value is not None}
    return jwt.encode(payload, key, algorithm=alg, headers={"kid": "one", **header})


def read(text: str, keys: list[dict[str, Any]] | None = None, *, groups_claim: str = "groups") -> login_rules.Person:
    return sso_providers.read_id_token(
        text, KEYS if keys is None else keys, expected=EXPECTED, groups_claim=groups_claim, now=NOW
    )


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in (header, claims))
    return ".".join([*parts, ""])


def test_an_honest_token_tells_who_it_is() -> None:
    person = read(token({"groups": ["staff", "mail"]}))
    assert person == login_rules.Person(ISSUER, "7", "jo@corp.example", has_email=True, groups=("staff", "mail"))
    assert read(token({"aud": ["postroad", "another"], "azp": "postroad"})).subject == "7"


@pytest.mark.parametrize(
    "algorithm, key",
    [
        ("RS256", oidc_provider.RSA_KEY),
        ("PS256", oidc_provider.RSA_KEY),
        ("ES256", oidc_provider.EC_KEY),
        ("EdDSA", oidc_provider.ED25519_KEY),
    ],
)
def test_every_algorithm_of_the_list_works(algorithm: str, key: object) -> None:
    keys = [oidc_provider.jwk(key, kid="one", algorithm=algorithm)]
    assert read(token({}, key=key, alg=algorithm), keys).subject == "7"


@pytest.mark.parametrize(
    "claims, why",
    [
        ({"iss": "https://login.other.example"}, "another issuer"),
        ({"iss": ISSUER + "/"}, "another issuer"),
        ({"aud": "another"}, "for another client"),
        ({"aud": ["another", "third"]}, "for another client"),
        ({"aud": ["postroad", "another"]}, "made for another client"),
        ({"aud": ["postroad", "another"], "azp": "another"}, "made for another client"),
        ({"azp": "another"}, "made for another client"),
        ({"nonce": "another nonce"}, "another login"),
        ({"nonce": None}, "another login"),
        ({"exp": NOW - 61}, "expired"),
        ({"iat": NOW + 61}, "future"),
        ({"nbf": NOW + 61}, "future"),
        ({"iat": NOW - 601}, "too long ago"),
        ({"exp": None}, "claim"),
        ({"iat": None}, "claim"),
        ({"sub": None}, "claim"),
        ({"sub": ""}, "sub"),
        ({"sub": "x" * 256}, "sub"),
        ({"sub": 7}, "claim"),
        ({"exp": "tomorrow"}, "claim"),
        ({"email_verified": "true"}, "claim"),
    ],
)
def test_a_token_about_something_else_is_refused(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(sso_providers.TokenRefused, match=why):
        read(token(claims))


def test_an_unsigned_token_is_refused() -> None:
    for name in ("none", "None", "NONE", "nOnE"):
        with pytest.raises(sso_providers.TokenRefused, match="signed with"):
            read(unsigned({"alg": name, "kid": "one"}, HONEST))


def test_the_public_key_is_no_shared_secret() -> None:
    """The confusion of RFC 8725 section 2.1: HS256 with the bytes of the public key."""
    head, payload, _ = token({}, key=b"x" * 64, alg="HS256").split(".")
    signature = hmac.new(PUBLIC_PEM, f"{head}.{payload}".encode(), hashlib.sha256).digest()
    forged = f"{head}.{payload}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    with pytest.raises(sso_providers.TokenRefused, match="signed with 'HS256'"):
        read(forged)
    shared = [{"kty": "oct", "kid": "one", "k": base64.urlsafe_b64encode(b"x" * 64).decode(), "alg": "HS256"}]
    with pytest.raises(sso_providers.TokenRefused, match="signed with 'HS256'"):
        read(token({}, key=b"x" * 64, alg="HS256"), shared)


def test_neither_a_key_that_the_token_brings_nor_a_changed_payload_passes() -> None:
    theirs = oidc_provider.jwk(oidc_provider.OTHER_RSA_KEY, kid="one")
    head, _, signature = token({}).split(".")
    payload = base64.urlsafe_b64encode(json.dumps(HONEST | {"sub": "8"}).encode()).decode().rstrip("=")
    for text in (
        token({}, key=oidc_provider.OTHER_RSA_KEY, jwk=theirs, jku="https://evil.example/keys"),
        f"{head}.{payload}.{signature}",
    ):
        with pytest.raises(sso_providers.TokenRefused, match="signature"):
            read(text)


def test_what_is_no_token_and_critical_extensions_are_refused() -> None:
    for text in ("", "x", "a.b.c", "....", "e30.e30.", "\x00", "ä.ä.ä", token({}, crit=["b64"], b64=True)):
        with pytest.raises(sso_providers.TokenRefused):
            read(text)


def test_a_key_of_another_kind_or_use_and_an_unknown_or_ambiguous_one_do_not_fit() -> None:
    for change in ({"use": "enc"}, {"alg": "PS256"}, {"d": "AQAB"}):
        with pytest.raises(sso_providers.UnknownKey):
            read(token({}), [KEYS[0] | change])
    for kid, keys in (
        ("one", [oidc_provider.jwk(oidc_provider.EC_KEY, kid="one", algorithm="ES256")]),
        ("one", [*KEYS, *KEYS]),
        ("two", KEYS),
    ):
        with pytest.raises(sso_providers.UnknownKey):
            read(token({}, kid=kid), keys)


def test_a_short_rsa_key_is_refused() -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - which is refused
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        text = token({}, key=short)
    with pytest.raises(sso_providers.TokenRefused, match="2048"):
        read(text, [oidc_provider.jwk(short, kid="one")])


@pytest.mark.parametrize(
    "claims, email",
    [
        ({"email_verified": True}, "jo@corp.example"),
        ({"email_verified": False}, None),
        ({"email_verified": None}, None),
        ({"email_verified": None, "xms_edov": True}, "jo@corp.example"),
        ({"email_verified": False, "xms_edov": True}, None),
        ({"email": None}, None),
    ],
)
def test_an_email_counts_only_if_it_is_verified(claims: dict[str, Any], email: str | None) -> None:
    assert read(token(claims)).email == email


@pytest.mark.parametrize(
    "value, groups", [("staff", ("staff",)), (["a", 7, "b"], ("a", "b")), (7, ()), ({"a": 1}, ()), (None, ())]
)
def test_groups_are_texts(value: object, groups: tuple[str, ...]) -> None:
    assert read(token({"roles": value}), groups_claim="roles").groups == groups
