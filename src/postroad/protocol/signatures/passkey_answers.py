"""The answers of authenticators to challenges, verified (Web Authentication Level 2, sections 7.1 and 7.2).

The library checks type, challenge, origin, the hash of the relying party's id, presence and verification of the person,
the algorithm, the counter and the signature. Here an answer from a frame of another site is refused too. The library is
imported with the first answer, because that takes a third of a second and 17 MB: call these functions in a thread.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from webauthn.helpers import structs

# COSE numbers (RFC 8152), the best first: ES256 and EdDSA; RS256 is that of Windows Hello.
ALGORITHMS: Final = (-7, -8, -257)
# Section 7.1, step 22 of Level 3: a longer id is refused.
MAX_ID_BYTES: Final = 1_023


class AnswerError(Exception):
    """The answer proves nothing."""


class Expected(msgspec.Struct, frozen=True):
    challenge: bytes
    rp_id: str
    origin: str
    needs_verification: bool


@dataclass(frozen=True, slots=True)
class NewCredential:
    id: bytes
    public_key: bytes = field(repr=False)
    sign_count: int
    transports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assertion:
    """An answer that names a credential, and is not verified yet.

    `user_handle` is whose credential it is, as the authenticator says; not all do.
    """

    credential_id: bytes
    user_handle: bytes | None
    parsed: "structs.AuthenticationCredential" = field(repr=False)


def verify_registration(answer: str, expected: Expected) -> NewCredential:
    """The credential of an answer; raises AnswerError."""
    import webauthn  # noqa: PLC0415
    from webauthn.helpers import cose, parse_registration_credential_json  # noqa: PLC0415

    with _refusing():
        parsed = parse_registration_credential_json(answer)
        _refuse_framed(parsed.response.client_data_json)
        verified = webauthn.verify_registration_response(
            credential=parsed,
            expected_challenge=expected.challenge,
            expected_rp_id=expected.rp_id,
            expected_origin=expected.origin,
            require_user_verification=expected.needs_verification,
            supported_pub_key_algs=[cose.COSEAlgorithmIdentifier(number) for number in ALGORITHMS],
        )
    if len(verified.credential_id) > MAX_ID_BYTES:
        raise AnswerError("the id of the credential is too long")
    transports = tuple(sorted({transport.value for transport in parsed.response.transports or ()}))
    return NewCredential(verified.credential_id, verified.credential_public_key, verified.sign_count, transports)


def read_assertion(answer: str) -> Assertion:
    """An answer, before its credential is looked up; raises AnswerError."""
    from webauthn.helpers import parse_authentication_credential_json  # noqa: PLC0415

    with _refusing():
        parsed = parse_authentication_credential_json(answer)
        return Assertion(parsed.raw_id, parsed.response.user_handle, parsed)


def verify_assertion(assertion: Assertion, expected: Expected, *, public_key: bytes, sign_count: int) -> int:
    """The new count of an answer that this credential has signed; raises AnswerError."""
    import webauthn  # noqa: PLC0415

    with _refusing():
        _refuse_framed(assertion.parsed.response.client_data_json)
        verified = webauthn.verify_authentication_response(
            credential=assertion.parsed,
            expected_challenge=expected.challenge,
            expected_rp_id=expected.rp_id,
            expected_origin=expected.origin,
            credential_public_key=public_key,
            credential_current_sign_count=sign_count,
            require_user_verification=expected.needs_verification,
        )
        return verified.new_sign_count


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Whatever goes wrong is the fault of the answer, which anybody may have written: the library only computes."""
    try:
        yield
    except Exception as problem:
        raise AnswerError(str(problem)) from problem


def _refuse_framed(client_data: bytes) -> None:
    """Refuse an answer from a frame in a page of another site (Level 3, section 7.2, step 14)."""
    from webauthn.helpers import parse_client_data_json  # noqa: PLC0415

    if parse_client_data_json(client_data).cross_origin:
        raise AnswerError("given in a frame of another site")
