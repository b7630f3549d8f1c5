"""Verification of ARC chains (RFC 8617 section 5.2): what hosts on the way say that they found. The caller asks DNS.

Each set has what was found (ARC-Authentication-Results), a signature of the message as it was then
(ARC-Message-Signature) and a seal of all sets so far (ARC-Seal). A chain holds if all seals do, and the newest of the
message signatures; the others break when a list changes the mail, which is what ARC is for. It says only who sealed:
whether to trust them is the reader's decision.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from postroad.protocol.signatures import dkim_verification

# Section 4.2.1. The size of the header bounds the work too: a set takes some 1,500 octets.
MAX_SETS: Final = 50
_PARTS: Final = (b"arc-authentication-results", b"arc-message-signature", b"arc-seal")
# The first of the results; that of signatures and seals may be anywhere among their tags.
_INSTANCE: Final = re.compile(rb"[ \t]*i[ \t]*=[ \t]*(\d{1,2})[ \t]*;")
_NUMBER: Final = re.compile(r"[1-9]\d?", re.ASCII)
_SEAL_TAGS: Final = frozenset({"i", "a", "b", "cv", "d", "s"})


class ArcError(ValueError):
    """The chain is broken, whatever the keys are; the message says why."""


class Chain(msgspec.Struct, frozen=True):
    """What the keys have to prove: the newest message signature, and the seals, the newest first.

    `results` is what the newest set says that was found when the mail came to its author.
    """

    message: dkim_verification.Signature
    seals: tuple[dkim_verification.Signature, ...]
    results: str


def read(message: dkim_verification.Message, *, now: int) -> Chain | None:
    """The chain of a message; None if it has none. Raises ArcError."""
    sets = _sets(message)
    if not sets:
        return None
    newest = sets[-1]
    signed = _signed(message, newest[1], now=now)
    tags = [dkim_verification.tags_of(each[2]) or {} for each in sets]
    for number, seal in enumerate(tags, start=1):
        _check_seal(seal, number=number)
    seals = list(_seals(sets, tags))[::-1]
    _, _, results = dkim_verification.relaxed_field(newest[0]).decode("utf-8", "replace").partition(";")
    return Chain(signed, tuple(seals), results.strip())


def _sets(message: dkim_verification.Message) -> list[tuple[bytes, bytes, bytes]]:
    """The three fields of each set, in the order of the instances."""
    columns = [_by_instance(message.fields(name)) for name in _PARTS]
    count = max(map(len, columns))
    if any(column.keys() != set(range(1, count + 1)) for column in columns):
        raise ArcError("a set is incomplete")
    results, signatures, seals = columns
    return [(results[number], signatures[number], seals[number]) for number in range(1, count + 1)]


def _by_instance(fields: Sequence[bytes]) -> dict[int, bytes]:
    if len(fields) > MAX_SETS:
        raise ArcError(f"there are more than {MAX_SETS} sets")
    found: dict[int, bytes] = {}
    for field in fields:
        begin = _INSTANCE.match(dkim_verification.relaxed_field(field).partition(b":")[2])
        written = begin[1].decode() if begin else (dkim_verification.tags_of(field) or {}).get("i", "")
        if not _NUMBER.fullmatch(written) or int(written) in found:
            raise ArcError("a field has no instance, or that of another one")
        found[int(written)] = field
    return found


def _signed(message: dkim_verification.Message, field: bytes, *, now: int) -> dkim_verification.Signature:
    """A message signature is one of DKIM without a version, whose `i=` is the instance (section 4.1.2)."""
    tags = dkim_verification.tags_of(field) or {}
    if "arc-seal" in tags.get("h", "").lower():
        raise ArcError("the message signature covers a seal")
    as_dkim = {name: value for name, value in tags.items() if name != "i"} | {"v": "1"}
    signed = message.examine(field, as_dkim, now=now)
    if isinstance(signed, dkim_verification.Refused):
        raise ArcError(signed.reason)
    return signed


def _check_seal(tags: Mapping[str, str], *, number: int) -> None:
    """Section 4.1.3, and that only the first chain begins."""
    if not tags.keys() >= _SEAL_TAGS or "h" in tags or tags["a"] not in dkim_verification.ALGORITHMS:
        raise ArcError(f"the seal of set {number} is malformed")
    if not (dkim_verification.is_name(tags["d"].lower()) and dkim_verification.is_name(tags["s"].lower())):
        raise ArcError(f"the seal of set {number} names no key")
    if tags["cv"].lower() != ("pass" if number > 1 else "none"):
        raise ArcError(f"the seal of set {number} says that the chain is broken")


def _seals(
    sets: Iterable[tuple[bytes, bytes, bytes]], tags: Iterable[Mapping[str, str]]
) -> Iterator[dkim_verification.Signature]:
    """Each covers the sets before it and its own, without its value (section 5.1.1)."""
    covered = hashlib.sha256()
    for (results, signature, seal), each in zip(sets, tags, strict=True):
        covered.update(dkim_verification.relaxed_field(results) + dkim_verification.relaxed_field(signature))
        own = covered.copy()
        empty = dkim_verification.OWN_VALUE.sub(rb"\1", seal, count=1)
        own.update(dkim_verification.relaxed_field(empty).removesuffix(b"\r\n"))
        covered.update(dkim_verification.relaxed_field(seal))
        domain, value = each["d"].lower(), dkim_verification.decoded(each["b"]) or b""
        yield dkim_verification.Signature(
            domain, each["s"].lower(), domain, each["a"], own.digest(), value, frozenset(), None
        )
