"""What a browser keeps for us is read only if we wrote it, for this purpose."""

import msgspec

from postroad.services import context
from postroad.services.auth import signed_values


class Value(msgspec.Struct, frozen=True):
    name: str


class Other(msgspec.Struct, frozen=True):
    number: int


async def test_a_value_is_read_for_its_purpose_only(ctx: context.Context) -> None:
    text = signed_values.write(ctx, Value("ä"), purpose="look")
    assert signed_values.read(ctx, text, Value, purpose="look") == Value("ä")
    assert signed_values.read(ctx, text, Value, purpose="passkey") is None
    # Of another version of the service.
    assert signed_values.read(ctx, text, Other, purpose="look") is None


async def test_what_we_did_not_write_is_not_read(ctx: context.Context) -> None:
    text = signed_values.write(ctx, Value("mine"), purpose="look")
    theirs = signed_values.write(ctx, Value("theirs"), purpose="look")
    for forged in ("", ".", "é.é", text[:-1], text.upper(), theirs.partition(".")[0] + "." + text.partition(".")[2]):
        assert signed_values.read(ctx, forged, Value, purpose="look") is None
