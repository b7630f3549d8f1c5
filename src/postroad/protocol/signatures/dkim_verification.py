"""Verification of DKIM signatures (RFC 6376 section 6, RFC 8463): rsa-sha256 and ed25519-sha256. The caller asks DNS.

A message gives its signatures that only lack the proof of their key, and `is_proven` decides with the key record. What
the RFC leaves to the verifier is decided strictly, because a signature here lets its author speak for a mailbox
provider: one with a body length (`l=`, section 8.2), or by a key of less than 1024 bits or in test mode, is not valid.
A header with a bare CR or LF has no fields, because other parsers would find other ones in it. Work is bounded: few
signatures, fields and names, one pass over the body for each canonicalization.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec
from cryptography import exceptions
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa, utils

from postroad.protocol.dns import tag_lists
from postroad.protocol.signatures import dkim

# A message has one for each organization that it went through; each costs a query and an operation of its key.
MAX_SIGNATURES: Final = 5
# A long way leaves some dozens of fields, and a signature names fewer.
MAX_HEADER_BYTES: Final = 64 * 1024
MAX_FIELDS: Final = 1_000
MAX_NAMES: Final = 200
# RFC 8301 section 3.2; longer ones than 4096 bits are not in use, and cost more with each bit.
RSA_BITS: Final = range(1024, 4097)
ALGORITHMS: Final = {"rsa-sha256": "rsa", "ed25519-sha256": "ed25519"}
_REQUIRED: Final = frozenset({"v", "a", "b", "bh", "d", "h", "s"})
_FIELD_ENDS: Final = re.compile(rb"\r\n(?![ \t])")
_BARE_LINE_END: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")
OWN_VALUE: Final = re.compile(rb"((?:\A[^:]*:|;)[ \t\r\n]*b[ \t\r\n]*=)[^;]*")
# A name that DNS can ask for: others would fail there as if no server answered.
_LABEL: Final = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?=.{{1,120}}\Z){_LABEL}(?:\.{_LABEL})*", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,12}", re.ASCII)


class Signature(msgspec.Struct, frozen=True):
    """A signature whose body hash is right: who signed, and what the key has to prove.

    `identity` is its `i=`, `names` are the fields that it covers, in lower case, and `signed_at` is its `t=` in seconds
    since 1970.
    """

    domain: str
    selector: str
    identity: str
    algorithm: str
    digest: bytes
    value: bytes
    names: frozenset[bytes]
    signed_at: int | None


class Refused(msgspec.Struct, frozen=True):
    """A signature that no key can prove. `result` is that of RFC 8601 section 2.7.1.

    Domain and selector are empty where something else is written.
    """

    domain: str
    selector: str
    result: Literal["fail", "policy", "permerror"]
    reason: str


class Message:
    def __init__(self, content: bytes) -> None:
        # Only a prefix is searched: a message of many megabytes without an empty line costs no more.
        head, end, _ = (b"\r\n" + content[:MAX_HEADER_BYTES]).partition(b"\r\n\r\n")
        self._content = content
        self._body_begin = len(head) + len(end) - 2
        is_whole = bool(end) or len(content) <= MAX_HEADER_BYTES
        fields = _FIELD_ENDS.split(head[2:], MAX_FIELDS) if is_whole and not _BARE_LINE_END.search(head) else []
        self._fields = [field for field in fields if b":" in field] if len(fields) <= MAX_FIELDS else []
        self._body_hashes: dict[str, bytes] = {}

    def values(self, name: bytes) -> list[bytes]:
        """The unfolded values of the fields with this name, which is in lower case."""
        return [relaxed_field(field).partition(b":")[2].strip() for field in self.fields(name)]

    def signatures(self, *, now: int) -> list[Signature]:
        """The first signatures, in the order of the message, without those that are malformed, expired or wrong."""
        return [each for each in self.examined(now=now) if isinstance(each, Signature)]

    def examined(self, *, now: int) -> list[Signature | Refused]:
        """The first signatures, in the order of the message, with what is wrong with the others."""
        fields = self.fields(b"dkim-signature")[:MAX_SIGNATURES]
        return [self.examine(field, tags_of(field), now=now) for field in fields]

    def fields(self, name: bytes) -> list[bytes]:
        """The fields with this name, which is in lower case, as they came but for the line end."""
        return [field for field in self._fields if _name_of(field) == name]

    def examine(self, field: bytes, tags: Mapping[str, str] | None, *, now: int) -> Signature | Refused:
        """The signature that a field has, whose tags these are."""
        tags = tags or {}
        domain, selector = (name if is_name(name) else "" for name in (tags.get(tag, "").lower() for tag in "ds"))
        if not tags.keys() >= _REQUIRED or not _is_acceptable(tags):
            return Refused(domain, selector, "permerror", "the signature is malformed")
        if "l" in tags:
            return Refused(domain, selector, "policy", "the signature covers only a part of the body")
        if "x" in tags and now > int(tags["x"]):
            return Refused(domain, selector, "permerror", "the signature has expired")
        head_form, _, body_form = tags.get("c", "simple/simple").partition("/")
        names = [name.strip().lower().encode() for name in tags["h"].split(":")]
        value, body_hash = decoded(tags["b"]), decoded(tags["bh"])
        if head_form not in _HEAD or (body_form or "simple") not in _BODY or not value or b"from" not in names:
            return Refused(domain, selector, "permerror", "the signature is malformed")
        if len(names) > MAX_NAMES:
            return Refused(domain, selector, "policy", f"the signature names more than {MAX_NAMES} fields")
        if body_hash != self._body_hash(body_form or "simple"):
            return Refused(domain, selector, "fail", "the body is not as it was signed")
        own = _HEAD[head_form](OWN_VALUE.sub(rb"\1", field, count=1)).removesuffix(b"\r\n")
        covered = [*map(_HEAD[head_form], self._covered(names, own=field)), own]
        identity = tags.get("i", "@" + domain).rpartition("@")[2].lower()
        digest = hashlib.sha256(b"".join(covered)).digest()
        signed_at = int(tags["t"]) if "t" in tags else None
        return Signature(domain, selector, identity, tags["a"], digest, value, frozenset(names), signed_at)

    def _covered(self, names: Sequence[bytes], *, own: bytes) -> list[bytes]:
        """The signed fields: of several with one name, the last comes first (section 5.4.2)."""
        present: dict[bytes, list[bytes]] = {}
        for field in self._fields:
            if field is not own:
                present.setdefault(_name_of(field), []).append(field)
        return [present[name].pop() for name in names if present.get(name)]

    def _body_hash(self, form: str) -> bytes:
        if form not in self._body_hashes:
            self._body_hashes[form] = hashlib.sha256(_BODY[form](self._content[self._body_begin :])).digest()
        return self._body_hashes[form]


def is_proven(signature: Signature, record: str) -> bool:
    """Whether the key of this record has made the signature (section 3.6.1)."""
    tags = tag_lists.parse(record)
    if tags is None or tags.get("v", "DKIM1") != "DKIM1" or tags.get("k", "rsa") != ALGORITHMS[signature.algorithm]:
        return False
    flags = _words(tags.get("t", ""))
    if "y" in flags or ("s" in flags and signature.identity != signature.domain):
        return False
    if "sha256" not in _words(tags.get("h", "sha256")) or not {"*", "email"} & _words(tags.get("s", "*")):
        return False
    key = decoded(tags.get("p", ""))
    verify = _is_by_rsa if signature.algorithm == "rsa-sha256" else _is_by_ed25519
    try:
        return key is not None and verify(key, signature)
    except (exceptions.InvalidSignature, exceptions.UnsupportedAlgorithm, ValueError):
        return False


def _is_by_rsa(key: bytes, signature: Signature) -> bool:
    public = serialization.load_der_public_key(key)
    if not isinstance(public, rsa.RSAPublicKey) or public.key_size not in RSA_BITS:
        return False
    public.verify(signature.value, signature.digest, padding.PKCS1v15(), utils.Prehashed(hashes.SHA256()))
    return True


def _is_by_ed25519(key: bytes, signature: Signature) -> bool:
    """It signs the digest (RFC 8463 section 3)."""
    ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature.value, signature.digest)
    return True


def _is_acceptable(tags: Mapping[str, str]) -> bool:
    """Section 6.1.1."""
    domain = tags["d"].lower()
    identity = tags.get("i", "@" + domain).rpartition("@")[2].lower()
    return (
        tags["v"] == "1"
        and tags["a"] in ALGORITHMS
        and "dns/txt" in _words(tags.get("q", "dns/txt"))
        and is_name(domain)
        and is_name(tags["s"].lower())
        and f".{identity}".endswith(f".{domain}")
        and ("t" not in tags or _NUMBER.fullmatch(tags["t"]) is not None)
        and ("x" not in tags or _NUMBER.fullmatch(tags["x"]) is not None)
    )


def is_name(text: str) -> bool:
    """Whether this is a domain or a selector in lower case that a key can be looked up by."""
    return _NAME.fullmatch(text) is not None


def tags_of(field: bytes) -> dict[str, str] | None:
    """The tags of a field of a signature; None if it is not a list of them."""
    return tag_lists.parse(field.partition(b":")[2].decode("ascii", errors="replace"))


def _name_of(field: bytes) -> bytes:
    return field.partition(b":")[0].rstrip(b" \t").lower()


def relaxed_field(field: bytes) -> bytes:
    """The field as it is hashed in the relaxed form, with its line end."""
    return dkim.relaxed_head(field)[0][1]


def _simple_field(field: bytes) -> bytes:
    return field + b"\r\n"


def _simple_body(body: bytes) -> bytes:
    """Section 3.4.3: one line end at the end."""
    return body[: len(body) - dkim.line_ends_length(body)] + b"\r\n"


_HEAD: Final[Mapping[str, Callable[[bytes], bytes]]] = {"simple": _simple_field, "relaxed": relaxed_field}
_BODY: Final[Mapping[str, Callable[[bytes], bytes]]] = {"simple": _simple_body, "relaxed": dkim.relaxed_body}


def _words(text: str) -> set[str]:
    return {word.strip() for word in text.split(":")}


def decoded(text: str) -> bytes | None:
    """Base64, in which white space has no meaning (section 3.2)."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
