"""A link names one file of one mail, and only we can make it."""

from postroad import context
from postroad.model.units import times
from postroad.services.inbound import attachment_links
from postroad.services.people import tokens


def test_a_link_is_read_until_it_expires(ctx: context.Context) -> None:
    expires_at = ctx.clock() + times.HOUR
    url = attachment_links.make(ctx, "acc_1", "in_1", index=2, expires_at=expires_at)
    base, _, token = url.rpartition(attachment_links.PATH)
    assert base.startswith("http")
    assert attachment_links.read(ctx, token) == attachment_links.Link("acc_1", "in_1", 2, expires_at)
    past = attachment_links.make(ctx, "acc_1", "in_1", index=2, expires_at=ctx.clock())
    assert attachment_links.read(ctx, past.rpartition("/")[2]) is None


def test_a_token_of_another_purpose_or_with_a_changed_value_is_none(ctx: context.Context) -> None:
    link = attachment_links.Link("acc_1", "in_1", 2, ctx.clock() + times.HOUR)
    other = tokens.write_value(ctx, link, purpose="something else")
    assert attachment_links.read(ctx, other) is None
    mine = attachment_links.make(ctx, *("acc_1", "in_1"), index=2, expires_at=link.expires_at).rpartition("/")[2]
    value = attachment_links.make(ctx, *("acc_2", "in_1"), index=2, expires_at=link.expires_at).rpartition("/")[2]
    assert attachment_links.read(ctx, f"{value.partition('.')[0]}.{mine.partition('.')[2]}") is None
    assert attachment_links.read(ctx, "") is None
