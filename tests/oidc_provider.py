"""An OpenID Connect provider on loopback that lies when it is told to: real HTTP, real keys, wrong answers.

`authorize` is what a browser and a person do at the authorization endpoint; it returns what the browser brings back.
Everything else is asked over HTTP. A test changes `claims`, `header`, `documents` or the signing key and sees what
comes of it. The honest provider of the browser tests is another one (tests/sso/provider.mjs).
"""

import base64
import contextlib
import hashlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib import parse

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests import webhook_server

HOST: Final = "127.0.0.1"
CLIENT_ID: Final = "postroad"
SECRET: Final = "a secret: 7/q+w & more"
SUBJECT: Final = "248289761001"
EMAIL: Final = "jo@corp.example"
# Generating one takes a while.
RSA_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ED25519_KEY: Final = ed25519.Ed25519PrivateKey.generate()
EC_KEY: Final = ec.generate_private_key(ec.SECP256R1())

_ALGORITHMS: Final[dict[str, Any]] = {
    "RS256": jwt.algorithms.RSAAlgorithm,
    "PS256": jwt.algorithms.RSAPSSAlgorithm,
    "ES256": jwt.algorithms.ECAlgorithm,
    "EdDSA": jwt.algorithms.OKPAlgorithm,
}


def jwk(key: Any, *, kid: str, algorithm: str = "RS256") -> dict[str, Any]:  # noqa: ANN401 - a private key
    """The public half of a key, as providers publish it."""
    public = _ALGORITHMS[algorithm].to_jwk(key.public_key(), as_dict=True)
    return {**public, "kid": kid, "use": "sig", "alg": algorithm}


@dataclass(slots=True)
class _Grant:
    client_id: str
    redirect_uri: str
    nonce: str
    challenge: str


@dataclass(slots=True)
class Provider:
    """The provider. `claims` replace those of an ID token; one that is None is left out."""

    server: webhook_server.WebhookServer
    now: Callable[[], float] = time.time
    claims: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=lambda: {"kid": "one"})
    algorithm: str = "RS256"
    key: Any = RSA_KEY
    keys: list[dict[str, Any]] = field(default_factory=lambda: [jwk(RSA_KEY, kid="one")])
    # Answers in place of those of a path, as bytes or as whatever tests/webhook_server.py understands.
    documents: dict[str, webhook_server.Raw] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    sends_iss: bool = True
    forgets_codes: bool = True
    _grants: dict[str, _Grant] = field(default_factory=dict)
    _numbers: Any = field(default_factory=itertools.count)

    @property
    def issuer(self) -> str:
        """Who it says that it is."""
        return f"http://{HOST}:{self.server.port}"

    def asked(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(request.path == path for request in self.server.requests)

    def authorize(self, url: str) -> dict[str, str]:
        """Log in at the authorization endpoint; returns the query of the redirect."""
        query = dict(parse.parse_qsl(parse.urlsplit(url).query, strict_parsing=True))
        assert url.startswith(f"{self.issuer}/authorize?")
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        code = f"code-{next(self._numbers)}"
        self._grants[code] = _Grant(query["client_id"], query["redirect_uri"], query["nonce"], query["code_challenge"])
        return {"code": code, "state": query["state"], **({"iss": self.issuer} if self.sends_iss else {})}

    def id_token(self, *, nonce: str, client_id: str = CLIENT_ID) -> str:
        """An ID token as it makes them now."""
        now = int(self.now())
        honest = {
            "iss": self.issuer,
            "sub": SUBJECT,
            "aud": client_id,
            "exp": now + 300,
            "iat": now,
            "nonce": nonce,
            "email": EMAIL,
            "email_verified": True,
        }
        claims = {name: value for name, value in {**honest, **self.claims}.items() if value is not None}
        return jwt.encode(claims, self.key, algorithm=self.algorithm, headers=self.header)

    def answer(self, request: webhook_server.ReceivedRequest) -> webhook_server.Raw:
        """The response to a request."""
        path = request.path.partition("?")[0]
        if path in self.documents:
            return self.documents[path]
        if path == "/.well-known/openid-configuration":
            return webhook_server.ok(200, json.dumps(self._metadata()).encode())
        if path == "/keys":
            return webhook_server.ok(200, json.dumps({"keys": self.keys}).encode())
        if path == "/token" and request.method == "POST":
            return self._token(request)
        return webhook_server.ok(404)

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/end",
            "authorization_response_iss_parameter_supported": self.sends_iss,
            **self.metadata,
        }

    def _token(self, request: webhook_server.ReceivedRequest) -> bytes:
        fields = dict(parse.parse_qsl(request.body.decode()))
        grant = self._grants.get(fields.get("code", ""))
        if self.forgets_codes:
            self._grants.pop(fields.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(fields.get("code_verifier", "").encode()).digest())
        if grant is None or grant.challenge != challenge.decode().rstrip("="):
            return webhook_server.ok(400, b'{"error": "invalid_grant"}')
        pair = f"{parse.quote_plus(CLIENT_ID)}:{parse.quote_plus(SECRET)}".encode()
        if request.headers.get("authorization") != f"Basic {base64.b64encode(pair).decode()}":
            return webhook_server.ok(401, b'{"error": "invalid_client"}')
        if fields.get("redirect_uri") != grant.redirect_uri:
            return webhook_server.ok(400, b'{"error": "invalid_grant"}')
        token = self.id_token(nonce=grant.nonce, client_id=grant.client_id)
        return webhook_server.ok(200, json.dumps({"access_token": "x", "id_token": token}).encode())


@contextlib.asynccontextmanager
async def running(*, now: Callable[[], float] = time.time) -> AsyncIterator[Provider]:
    """A provider for the time of the block."""
    async with webhook_server.running(host=HOST, tls=False) as server:
        provider = Provider(server, now)
        server.answer = provider.answer
        yield provider
