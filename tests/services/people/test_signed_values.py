"""What a browser keeps for us is read only if we wrote it, for this purpose."""

import msgspec

from postroad import context
from postroad.services.people import tokens


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
