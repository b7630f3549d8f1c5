"""The texts of notices: every kind has one that its values fill, and one of them is previewed whole."""

import re

import pytest

from postroad.mail import notice_kinds
from postroad.protocol.text import mustache
from postroad.services.operations.notices import sender

# What the code that writes a kind gives it.
COMMON = {"account": "Corner Shop", "account_id": "acc_1"}
CHECK = {
    "check": "disk",
    "host": "mx.example.org",
    "found": "92% of /var is used",
    "advice": "delete old files",
    "page": "https://mail.example.org/docs/doctor.md#disk",
}
FACTOR = {"email": "jo@example.net", "factor": "an authenticator app", "at": "2027-01-15T08:00:00.000Z"}
LINK = {
    "email": "new@example.net",
    "inviter": "An owner of the account",
    "sealed_token": "c2VhbGVk",
    "expires_at": "2027-01-18T08:00:00.000Z",
}
VALUES: dict[str, dict[str, str]] = {
    notice_kinds.CHECK_FAILED: CHECK,
    notice_kinds.CHECK_WARNING: CHECK | {"advice": ""},
    notice_kinds.ADDRESS_BLOCKED: {"provider": "Google", "blocklist": "", "recipients": "12", "source": ""},
    notice_kinds.QUEUE_DELAYED: {"minutes": "31", "recipients": "12"},
    notice_kinds.ANY_ACCOUNT_SUSPENDED: {"reason": "the bounce rate is 12%"},
    notice_kinds.ACCOUNT_WARNED: {"cause": "bounces", "recipients": "200", "bounces": "12", "complaints": "0"},
    notice_kinds.ACCOUNT_SUSPENDED: {"reason": "the bounce rate is 12%"},
    notice_kinds.DOMAIN_FAILING: {
        "domain_id": "dom_1",
        "domain": "shop.example",
        "failing_since": "2027-01-15T08:00:00.000Z",
        "verified_until": "2027-01-22T08:00:00.000Z",
    },
    notice_kinds.WEBHOOK_FAILING: {"webhook_id": "whk_1", "host": "hooks.example", "since": "2027-01-15T08:00:00.000Z"},
    notice_kinds.WEBHOOK_DISABLED: {
        "webhook_id": "whk_1",
        "host": "hooks.example",
        "since": "2027-01-15T08:00:00.000Z",
    },
    notice_kinds.CREDITS_LOW: {"available": "3", "used": "90"},
    notice_kinds.STORAGE_LOW: {"used": "230", "quota": "256", "is_test": "test", "days": "3"},
    notice_kinds.KEY_ENDING: {"key": "Website", "hint": "pr_live_…ab12", "expires_at": "2027-01-18T08:00:00.000Z"},
    notice_kinds.NEW_NETWORK: {"email": "jo@example.net", "address": "192.0.2.1", "at": "2027-01-15T08:00:00.000Z"},
    notice_kinds.INVITATION: LINK,
    notice_kinds.PASSWORD_LINK: LINK,
    notice_kinds.RECOVERY_LINK: LINK,
    notice_kinds.FACTOR_ADDED: FACTOR,
    notice_kinds.FACTOR_REMOVED: FACTOR,
}
FOOTER = sender.Footer("https://mail.example.org/profile#mail", "https://mail.example.org/notices/token")
PREVIEW = """\
The DKIM record of shop.example can no longer be found in DNS, so receivers cannot
check the signatures of your mail.

Publish the record again. If it is still missing at 2027-01-22 08:00 UTC, the
verification of the domain ends, and mail from it is refused.

https://mail.example.org/domains/dom_1

--
Stop mail of this kind: https://mail.example.org/notices/token
Choose what you get by email: https://mail.example.org/profile#mail
"""


@pytest.mark.parametrize("kind", notice_kinds.KINDS)
def test_every_kind_has_a_text_that_its_values_fill(kind: str) -> None:
    rendered = sender.render(kind, COMMON | VALUES[kind], link="https://mail.example.org/x", footer=FOOTER)
    assert 10 < len(rendered.subject) < 90
    for text in (rendered.subject, rendered.text, rendered.html):
        assert "{{" not in text
        assert "https://mail.example.org/x" in text or text is rendered.subject
    assert rendered.text.endswith("#mail\n")
    assert "\n\n\n" not in rendered.text
    assert max(len(line) for line in rendered.text.splitlines()) < 110
    # The page to open is made of the values.
    assert "{" not in notice_kinds.KINDS[kind].path.format_map(COMMON | VALUES[kind])


def test_a_mail_is_shown_whole() -> None:
    rendered = sender.render(
        notice_kinds.DOMAIN_FAILING,
        COMMON | VALUES[notice_kinds.DOMAIN_FAILING],
        link="https://mail.example.org/domains/dom_1",
        footer=FOOTER,
    )
    assert rendered.subject == "The DKIM record of shop.example is gone"
    assert rendered.text == PREVIEW
    shown = " ".join(re.sub(r"<title>.*</title>|<[^>]+>", " ", rendered.html).split())
    assert shown == (
        "The DKIM record of shop.example is gone The DKIM record of shop.example can no longer be found in DNS, so "
        "receivers cannot check the signatures of your mail. Publish the record again. If it is still "
        "missing at 2027-01-22 08:00 UTC, the verification of the domain ends, and mail from it is refused. "
        "https://mail.example.org/domains/dom_1 Stop mail of this kind . Choose what you get by email ."
    )


def test_no_template_puts_out_a_value_that_is_not_escaped() -> None:
    for name in (*notice_kinds.KINDS, sender.DIGEST):
        assert "{{{" not in sender._source(f"{name}.txt")
    layout = mustache.parse(sender._source("layout.html"))
    assert isinstance(layout, mustache.Template)
    assert "{{{" not in sender._source("layout.html")
    assert "{{&" not in sender._source("layout.html")


def test_nobody_is_mentioned_in_a_channel() -> None:
    text = sender.summary(notice_kinds.ANY_ACCOUNT_SUSPENDED, {"account": "@channel <!channel> <https://a.example|b>"})
    shown = sender.for_slack(text)
    assert shown == ("Account @\u200bchannel &lt;!channel&gt; &lt;https[:]//a[.]example|b&gt; was suspended")


def test_a_digest_lists_only_so_many() -> None:
    items = [(notice_kinds.CREDITS_LOW, COMMON | VALUES[notice_kinds.CREDITS_LOW])] * 52
    rendered = sender.render_digest(items, link="", footer=sender.Footer("https://mail.example.org/profile#mail"))
    assert rendered.subject == "Digest of notices: 52"
    assert rendered.text.count("* Credits of the account Corner Shop are low\n") == 50
    assert "2 more are not listed." in rendered.text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("Corner Shop", "Corner Shop"),
        ("www.evil.example", "www[.]evil[.]example"),
        ("https://evil.example/a.b", "https[:]//evil[.]example/a[.]b"),
        ("eve@evil.example", "eve[@]evil[.]example"),
        ("5.7.1 blocked: 192.0.2.4, see shop.1st.example", "5.7.1 blocked: 192.0.2.4, see shop.1st[.]example"),
        ("Dr. No, Ltd.", "Dr. No, Ltd."),
        ("a\r\nBcc: b\u2028c\x00\u202ed", "a Bcc: b c d"),
        ("x" * 300, "x" * 80),
    ],
)
def test_what_strangers_write_is_no_link(text: str, shown: str) -> None:
    assert sender.without_links(text) == shown
