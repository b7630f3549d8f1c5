"""Answers of authenticators, each with one thing wrong."""

import json
from typing import Any

import pytest

from postroad.protocol.signatures import passkey_answers
from tests.software_authenticator import SoftwareAuthenticator, decode, encode

ORIGIN = "https://mail.example.net"
CHALLENGE = b"c" * 32
CREATE: dict[str, Any] = {
    "rp": {"id": "mail.example.net"},
    "user": {"id": encode(b"u" * 32)},
    "challenge": encode(CHALLENGE),
}
GET: dict[str, Any] = {"rpId": "mail.example.net", "challenge": encode(CHALLENGE)}


def expected(*, challenge: bytes = CHALLENGE, needs_verification: bool = True) -> passkey_answers.Expected:
    return passkey_answers.Expected(challenge, "mail.example.net", ORIGIN, needs_verification)


@pytest.fixture
def authenticator() -> SoftwareAuthenticator:
    return SoftwareAuthenticator(ORIGIN)


@pytest.fixture
def credential(authenticator: SoftwareAuthenticator) -> passkey_answers.NewCredential:
    return passkey_answers.verify_registration(authenticator.create(CREATE), expected())


def check(answer: str, credential: passkey_answers.NewCredential, *, sign_count: int = 0, **changes: Any) -> int:
    assertion = passkey_answers.read_assertion(answer)
    return passkey_answers.verify_assertion(
        assertion, expected(**changes), public_key=credential.public_key, sign_count=sign_count
    )


def test_a_new_credential_has_an_id_a_key_and_ways_to_reach_it(
    authenticator: SoftwareAuthenticator, credential: passkey_answers.NewCredential
) -> None:
    assert (credential.id, credential.sign_count) == (authenticator.id, 0)
    assert credential.transports == ("hybrid", "internal")


def test_an_answer_is_signed_by_the_credential_and_counts(
    authenticator: SoftwareAuthenticator, credential: passkey_answers.NewCredential
) -> None:
    answer = authenticator.get(GET)
    assertion = passkey_answers.read_assertion(answer)
    assert (assertion.credential_id, assertion.user_handle) == (authenticator.id, b"u" * 32)
    assert check(answer, credential) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://mail.example.net"},
        {"origin": "https://mail.example.net.evil.example"},
        {"rp_id": "evil.example"},
        {"is_framed": True},
        {"kind": "webauthn.get"},
        {"algorithm": -47},  # ES256K
        {"algorithm": -65535},  # RS1
    ],
    ids=str,
)
def test_a_registration_with_one_thing_wrong_is_refused(
    authenticator: SoftwareAuthenticator, wrong: dict[str, Any]
) -> None:
    with pytest.raises(passkey_answers.AnswerError):
        passkey_answers.verify_registration(authenticator.create(CREATE, **wrong), expected())


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example"},
        {"rp_id": "evil.example"},
        {"is_framed": True},
        {"kind": "webauthn.create"},
    ],
    ids=str,
)
def test_an_answer_with_one_thing_wrong_is_refused(
    authenticator: SoftwareAuthenticator, credential: passkey_answers.NewCredential, wrong: dict[str, Any]
) -> None:
    with pytest.raises(passkey_answers.AnswerError):
        check(authenticator.get(GET, **wrong), credential)


def test_an_answer_to_another_challenge_is_refused(
    authenticator: SoftwareAuthenticator, credential: passkey_answers.NewCredential
) -> None:
    with pytest.raises(passkey_answers.AnswerError):
        check(authenticator.get(GET), credential, challenge=b"d" * 32)


def test_the_person_must_be_verified_where_it_is_asked_for() -> None:
    authenticator = SoftwareAuthenticator(ORIGIN, verifies=False)
    credential = passkey_answers.verify_registration(authenticator.create(CREATE), expected(needs_verification=False))
    with pytest.raises(passkey_answers.AnswerError):
        check(authenticator.get(GET), credential)
    assert check(authenticator.get(GET), credential, needs_verification=False) == 2


def test_a_count_that_does_not_rise_is_refused(
    authenticator: SoftwareAuthenticator, credential: passkey_answers.NewCredential
) -> None:
    answer = authenticator.get(GET)
    with pytest.raises(passkey_answers.AnswerError):
        check(answer, credential, sign_count=1)
    assert check(answer, credential, sign_count=0) == 1


def test_the_key_of_another_credential_does_not_sign(credential: passkey_answers.NewCredential) -> None:
    other = SoftwareAuthenticator(ORIGIN)
    other.create(CREATE)
    with pytest.raises(passkey_answers.AnswerError):
        check(other.get(GET), credential)


@pytest.mark.parametrize("name", ["authenticatorData", "signature", "clientDataJSON"])
def test_every_changed_byte_is_noticed(
    authenticator: SoftwareAuthenticator, credential: passkey_answers.NewCredential, name: str
) -> None:
    given = json.loads(authenticator.get(GET))
    right = decode(given["response"][name])
    for place in range(0, len(right), 7):
        changed = bytearray(right)
        changed[place] ^= 1
        given["response"][name] = encode(bytes(changed))
        with pytest.raises(passkey_answers.AnswerError):
            check(json.dumps(given), credential)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 5000,
        '{"id": 1}',
        '{"rawId": "a", "id": "a", "type": "public-key", "response": {}}',
    ],
    ids=range(7),
)
def test_what_is_not_an_answer_is_refused(text: str) -> None:
    with pytest.raises(passkey_answers.AnswerError):
        passkey_answers.read_assertion(text)
    with pytest.raises(passkey_answers.AnswerError):
        passkey_answers.verify_registration(text, expected())


@pytest.mark.parametrize("length, is_accepted", [(1_023, True), (1_024, False)])
def test_a_credential_has_an_id_of_at_most_1023_bytes(length: int, is_accepted: bool) -> None:  # noqa: FBT001
    answer = SoftwareAuthenticator(ORIGIN, id=b"x" * length).create(CREATE)
    if is_accepted:
        assert len(passkey_answers.verify_registration(answer, expected()).id) == length
    else:
        with pytest.raises(passkey_answers.AnswerError):
            passkey_answers.verify_registration(answer, expected())


def test_broken_cbor_is_refused(authenticator: SoftwareAuthenticator) -> None:
    given = json.loads(authenticator.create(CREATE))
    for broken in (b"", b"\xa3" + b"\xff" * 64, b"\x9f" * 10_000, b"\xbf" * 10_000):
        given["response"]["attestationObject"] = encode(broken)
        with pytest.raises(passkey_answers.AnswerError):
            passkey_answers.verify_registration(json.dumps(given), expected())
