"""JSON from any octets.

Holds: nothing but `JsonError` is raised; what is taken, the standard library reads as the same; what it refuses is
refused; the quick way and the slow way agree.
"""

import json
from typing import Final

from postroad.protocol.text import strict_json
from tests.fuzz import target


def check(data: bytes) -> None:
    try:
        value = strict_json.read(data)
    except strict_json.JsonError as refusal:
        _check_error_text(str(refusal))
        assert strict_json.read_plain(data) is None
        return
    assert value == json.loads(data)
    assert value == strict_json._read_any(data)


def _check_error_text(refusal: str) -> None:
    assert target.is_sayable(refusal, most=400)


TARGET: Final = target.Target(
    name="json",
    open=target.plain(check),
    watches=("protocol/text/strict_json.py",),
    seeds=(
        b'{"from":"a@example.com","to":["b@example.com"],"subject":"\\u00fc \\ud83d\\ude00","text":null}',
        b'{"a":{"b":[1,-2.5e3,true,false,null,"x"]},"a2":18446744073709551615}',
        b'{"a":1,"a":2}',
        b'{"a":"x","a":"y"}',
        b'{"a":"\\"a\\":"}',
        b"[" * 70 + b"]" * 70,
        b"[NaN,Infinity,1e999,-0.0,1E400,123456789012345678901234567890]",
        b'"\\ud800"',
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        b"",
    ),
    steps=(3_000, 60),
)
