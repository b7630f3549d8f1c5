"""Strict JSON for untrusted input: two parsers can never understand it differently (RFC 8259, RFC 7493).

msgspec parses most requests; the standard library parses whatever has numbers or might have duplicate members, because
only it reports every number and every member as written.
Refused besides what it refuses: byte order marks, invalid UTF-8, unpaired surrogates, duplicate members, NaN and
Infinity, integers beyond 64 bits, numbers beyond a double, nesting deeper than 64, and more values than any honest
request has. No input can exhaust the stack, grow to many times its size in memory, or take longer than its length
explains.
"""

import json
import math
import re
from typing import Final, NoReturn

import msgspec

MAX_DEPTH: Final = 64
# The largest send that is allowed has some 2,000 values; one of two bytes in the text costs 60 in memory.
MAX_VALUES: Final = 100_000
_MAX_NUMBER_CHARACTERS: Final = 64  # 64-bit integers have 20, and a double is exact with 17 digits
_MIN_INTEGER: Final = -(2**63)
_MAX_INTEGER: Final = 2**64 - 1
_SHOWN_CHARACTERS: Final = 40
# The closing quote is optional and nothing is tried twice: a string without an end costs no second look.
_STRING_OR_SIGN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[,\[{]', re.DOTALL)
_QUOTE: Final = ord('"')


# A larger body carries files, and those stand in nested objects. In this one there is no room for more values than are
# allowed: each of a plain object takes three octets or more.
_PLAIN_BYTES: Final = 256 * 1024
_PLAIN: Final = msgspec.json.Decoder(dict[str, str | list[str] | None])
_NESTED: Final = msgspec.json.Decoder()
_NAME_END: Final = re.compile(rb'"[ \t\r\n]*:')
# Finds all of those and colons after a blank in a text, in less time: most texts have none.
_NAME_END_OR_TEXT: Final = re.compile(rb':(?<=["\s]:)')


class JsonError(ValueError):
    """The bytes are not JSON that we take. The message says what is wrong, where that is known, and is safe to show."""


def read(raw: bytes) -> object:
    """The value that the bytes describe, or a `JsonError`."""
    plain = read_plain(raw)
    return read_other(raw) if plain is None else plain


def read_other(raw: bytes) -> object:
    """The same for what `read_plain` does not take."""
    if len(raw) > MAX_VALUES:  # else there is no room for so many
        _refuse_many_values(raw)
    nested = _read_nested(raw)
    return _read_any(raw) if nested is None else nested


def read_plain(raw: bytes) -> dict[str, str | list[str] | None] | None:
    """An object of texts and lists of texts, as most requests are, in half the time; None for everything else.

    Decoding stops at the first value that is not plain. msgspec does not report duplicate names. But
    every member needs a quote and a colon after its name, so where there are no more of those than names, each occurs
    once. In texts they do no harm: they only make the count larger.
    """
    if len(raw) > _PLAIN_BYTES:
        return None
    try:
        value = _PLAIN.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # `_read_any` says what is wrong
    names = len(value)
    is_unique = len(_NAME_END_OR_TEXT.findall(raw)) == names or len(_NAME_END.findall(raw)) == names
    return value if is_unique else None


def _read_nested(raw: bytes) -> object | None:
    """Objects and lists without numbers, as batches are, in a fifth of the time; None for everything else.

    Names are counted as in `read_plain`. Of numbers, msgspec does not tell those that are too large.
    """
    try:
        value: object = _NESTED.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # `_read_any` says what is wrong
    return value if _count_members(value) == len(_NAME_END.findall(raw)) else None


def _count_members(value: object) -> int | None:
    """How many members the objects have; None if there is a number, or if they are nested too deep."""
    members, level = 0, [value]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                members += len(item)
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif not (isinstance(item, str | bool) or item is None):
                return None
        if not below:
            return members
        level = below
    return None


def _read_any(raw: bytes) -> object:
    try:
        value: object = _DECODER.decode(raw.decode())
    except json.JSONDecodeError as error:
        raise JsonError(_what_is_wrong(raw, error)) from None
    except UnicodeDecodeError as error:
        raise JsonError(f"JSON must be UTF-8, and byte {error.start} is not") from None
    except RecursionError:
        raise _too_deep() from None
    _refuse_depth(value)
    _refuse_half_surrogates(value)
    return value


def _refuse_many_values(raw: bytes) -> None:
    signs = (b",", b"[", b"{")
    if sum(_count(raw, sign) for sign in signs) <= MAX_VALUES:
        return  # those in strings were counted too, so more of them prove nothing yet
    # A string is a value or the name of one, so there is a bound for those too, and the walk is never a long one.
    strings, others = 0, 0
    for token in _STRING_OR_SIGN.finditer(raw):
        is_string = raw[token.start()] == _QUOTE
        strings, others = strings + is_string, others + (not is_string)
        if others > MAX_VALUES or strings > 2 * MAX_VALUES:
            raise JsonError(f"JSON may have at most {MAX_VALUES} values here")


def _count(raw: bytes, sign: bytes) -> int:
    """How often the sign occurs, but no more than the limit and one. Hopping is far quicker than `count` in base64."""
    found = 0
    position = raw.find(sign)
    while position >= 0 and found <= MAX_VALUES:
        found += 1
        position = raw.find(sign, position + 1)
    return found


def _refuse_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for container in level:
            if isinstance(container, dict):
                below += [member for member in container.values() if isinstance(member, dict | list)]
            elif isinstance(container, list):
                below += [element for element in container if isinstance(element, dict | list)]
        if not below:
            return
        level = below
    raise _too_deep()


def _too_deep() -> JsonError:
    return JsonError(f"JSON may be nested at most {MAX_DEPTH} levels deep")


def _refuse_half_surrogates(value: object) -> None:
    # The parser joins the escapes of a pair and keeps a half; encoding fails on a half, and is the quickest look.
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise JsonError("a string contains an unpaired surrogate") from None


def _what_is_wrong(raw: bytes, error: json.JSONDecodeError) -> str:
    if not raw.strip(b" \t\r\n"):
        return "the body is empty; JSON is expected"
    if raw.startswith(b"\xef\xbb\xbf"):
        return "JSON must not start with a byte order mark"
    return f"this is not JSON: {error.msg.removesuffix(' at')} at line {error.lineno}, column {error.colno}"


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise JsonError(f"the member {name[:_SHOWN_CHARACTERS]!r} occurs twice in one object")
            seen.add(name)
    return members


def _integer(text: str) -> int:
    # The length first: reading a million digits takes very long (CVE-2020-10735).
    value = int(text) if len(text) <= _MAX_NUMBER_CHARACTERS else _MAX_INTEGER + 1
    if not _MIN_INTEGER <= value <= _MAX_INTEGER:
        raise JsonError(f"the number {text[:_SHOWN_CHARACTERS]} does not fit into 64 bits")
    return value


def _fraction(text: str) -> float:
    value = float(text) if len(text) <= _MAX_NUMBER_CHARACTERS else math.inf
    if math.isinf(value):
        raise JsonError(f"the number {text[:_SHOWN_CHARACTERS]} is too large or too long")
    return value


def _constant(text: str) -> NoReturn:
    raise JsonError(f"{text} is not a JSON number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)
