"""Orders certificates from an authority (ACME, RFC 8555), with the library of certbot.

The library blocks, so every function here runs in a thread, and none takes longer than a request or two: whoever calls
them waits between them. It takes a second to import and is imported when a certificate is ordered.
"""

import datetime as dt
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar

import josepy
import msgspec
import requests
from acme import challenges as acme_challenges
from acme import client, errors, messages
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from josepy import jwa, jwk

from postroad.protocol.mime import address

USER_AGENT: Final = "Postroad"
# A shutdown waits for a request in progress.
REQUEST_SECONDS: Final = 15
# Of an error: it is stored, logged and shown.
MAX_ERROR_CHARACTERS: Final = 1000
_UNSEEN: Final = re.compile(f"[{address.UNSEEN}\ud800-\udfff]")
# The library assumes the types of much that it reads.
_UNEXPECTED: Final = (
    errors.Error,
    josepy.errors.Error,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
)

P = ParamSpec("P")
T = TypeVar("T")


class AcmeError(Exception):
    """A certificate could not be obtained; the text says why, in one plain line.

    An authority quotes what it has found at a name, which may be anybody's.
    """

    def __init__(self, text: str) -> None:
        super().__init__(_UNSEEN.sub(" ", text)[:MAX_ERROR_CHARACTERS])


@acme_challenges.ChallengeResponse.register
class TlsAlpn01Response(acme_challenges.KeyAuthorizationChallengeResponse):
    """The library knows HTTP and DNS challenges only."""

    typ = "tls-alpn-01"


@acme_challenges.Challenge.register
class TlsAlpn01(acme_challenges.KeyAuthorizationChallenge):
    """A challenge of RFC 8737."""

    response_cls = TlsAlpn01Response
    typ = response_cls.typ

    def validation(self, account_key: jwk.JWK, **kwargs: Any) -> str:
        """What the certificate has the hash of."""
        del kwargs
        return self.key_authorization(account_key)


class Challenge(msgspec.Struct, frozen=True):
    """What a host must show to validate a name."""

    name: str
    token: str
    key_authorization: str


class Order(msgspec.Struct):
    """An order in progress; `challenges` are those of names that are not validated yet."""

    resource: messages.OrderResource
    challenges: Sequence[Challenge]
    answers: Sequence[tuple[messages.ChallengeBody, acme_challenges.ChallengeResponse]]
    is_validated: bool = False


def new_key() -> bytes:
    """A private key, of an account or of a certificate, in PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _load(key: bytes) -> ec.EllipticCurvePrivateKey:
    private = serialization.load_pem_private_key(key, password=None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)  # noqa: S101 - made by `new_key`
    return private


def _explained(call: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(call)
    def explained(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except messages.Error as problem:
            raise AcmeError(
                f"the authority refused: {problem.detail or problem.description} ({problem.code})"
            ) from None
        except requests.RequestException as problem:
            where = str(problem.request.url) if problem.request is not None else "the authority"
            raise AcmeError(f"{where} cannot be reached: {type(problem).__name__}") from None
        except _UNEXPECTED as problem:
            raise AcmeError(f"the authority answered unexpectedly: {type(problem).__name__}: {problem}") from None

    return explained


class AcmeClient:
    """A connection to the directory of an authority, with an account."""

    def __init__(self, directory: str, account_key: bytes, *, ca_file: str = "") -> None:
        self._key = jwk.JWKEC(key=josepy.util.ComparableECKey(_load(account_key)))
        self._directory = directory
        self._network = client.ClientNetwork(self._key, alg=jwa.ES256, user_agent=USER_AGENT, timeout=REQUEST_SECONDS)
        if ca_file:
            # The library hands it to requests, which takes the name of a file too.
            self._network.verify_ssl = ca_file  # type: ignore[assignment]
        self._client: client.ClientV2

    @_explained
    def register(self, email: str) -> str:
        """Create the account, and agree to the terms; the URI of the account. The same key has the same account."""
        self._connect()
        wanted = messages.NewRegistration.from_data(email=email or None, terms_of_service_agreed=True)
        try:
            return str(self._client.new_account(wanted).uri)
        except errors.ConflictError as known:
            self._use(known.location)
            return str(known.location)

    @_explained
    def use_account(self, uri: str) -> None:
        """Work with an account that was registered before."""
        self._connect()
        self._use(uri)

    @_explained
    def order(self, names: Sequence[str], key: bytes, *, kind: str) -> Order:
        """Order a certificate with this key, and get its challenges of a kind."""
        private = _load(key)
        request = (
            x509.CertificateSigningRequestBuilder()
            .subject_name(x509.Name([]))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
            .sign(private, hashes.SHA256())
        )
        resource = self._client.new_order(request.public_bytes(serialization.Encoding.PEM))
        wanted = {name.lower() for name in names}
        pending = [
            authorization
            for authorization in resource.authorizations
            if authorization.body.status == messages.STATUS_PENDING
        ]
        asked: list[Challenge] = []
        answers = []
        for authorization in pending:
            name = authorization.body.identifier.value
            if name.lower() not in wanted:
                # Every listener would show a proof for it, and one that is no host name could not be shown.
                raise AcmeError(f"the authority wants a proof for another name: {name}")
            body = next((challenge for challenge in authorization.body.challenges if challenge.chall.typ == kind), None)
            if body is None:
                raise AcmeError(f"the authority offers no challenge {kind} for {name}")
            response, authorized = body.response_and_validation(self._key)
            token = body.chall.encode("token")
            asked.append(Challenge(name, token, authorized))
            answers.append((body, response))
        return Order(resource, asked, answers)

    @_explained
    def answer(self, order: Order) -> None:
        for body, response in order.answers:
            self._client.answer_challenge(body, response)

    @_explained
    def poll(self, order: Order) -> str | None:
        """The certificate with its chain in PEM; None while it is not ready."""
        if not order.is_validated:
            order.is_validated = all(
                self._is_validated(authorization) for authorization in order.resource.authorizations
            )
            return None
        try:
            # The library polls until the deadline, at least once.
            deadline = dt.datetime.now() + dt.timedelta(milliseconds=100)  # noqa: DTZ005 - as it has it
            return str(self._client.poll_finalization(order.resource, deadline).fullchain_pem)
        except errors.TimeoutError:
            return None

    def _is_validated(self, authorization: messages.AuthorizationResource) -> bool:
        found, _ = self._client.poll(authorization)
        if found.body.status == messages.STATUS_VALID:
            return True
        if found.body.status == messages.STATUS_PENDING:
            return False
        reasons = [str(challenge.error.detail) for challenge in found.body.challenges if challenge.error is not None]
        name = found.body.identifier.value
        raise AcmeError(f"{name} could not be validated: {'; '.join(reasons) or found.body.status}")

    def _connect(self) -> None:
        directory = client.ClientV2.get_directory(self._directory, self._network)
        self._client = client.ClientV2(directory, self._network)

    def _use(self, uri: str) -> None:
        self._network.account = messages.RegistrationResource(uri=uri, body=messages.Registration())
