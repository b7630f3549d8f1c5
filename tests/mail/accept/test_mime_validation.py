"""The rules of a finished message, field by field: what passes comes out trusted, what does not is refused by name."""

import contextlib
import email.policy
import json
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import errors
from postroad.mail.accept import mime_validation
from postroad.model.mail import statuses
from postroad.protocol.mime import header_fields
from tests.services.mime_messages import FROM, SUBJECT, TO, plain, raw


def refusal(message: statuses.RawMessage) -> tuple[str, str]:
    """The code word and the text with which the message is refused."""
    with pytest.raises(errors.PostroadError) as refused:
        mime_validation.check(message)
    return refused.value.code, refused.value.message


def people(count: int) -> tuple[str, ...]:
    return tuple(f"person{number}@example.org" for number in range(count))


# From, Sender and the envelope sender


@pytest.mark.parametrize(
    "field, name",
    [
        ("From: shop@example.com", None),
        ("from: Shop <shop@example.com>", "Shop"),
        ("FROM: =?utf-8?q?B=C3=BCro?=\r\n <shop@EXAMPLE.com>", "Büro"),
        ('From: "Shop, the" <shop@example.com> (the shop)', "Shop, the"),
    ],
)
def test_from_is_read_as_clients_write_it(field: str, name: str | None) -> None:
    sender = mime_validation.check(raw(field, TO)).sender
    assert (sender.address, sender.display_name) == ("shop@example.com", name)


@pytest.mark.parametrize(
    "fields",
    [
        (FROM, FROM),
        (FROM, "From: eve@example.net"),
        ("From: shop@example.com, eve@example.net",),
        ("From:",),
        (FROM, "Sender: eve@example.net"),
        (FROM, "Sender: shop@example.com", "Sender: eve@example.net"),
        (FROM, "Sender: shop@example.com, eve@example.net"),
    ],
)
def test_a_message_of_nobody_or_of_several_is_forbidden(fields: tuple[str, ...]) -> None:
    code, text = refusal(raw(*fields, TO, SUBJECT))
    assert code == "forbidden"
    assert text.startswith(("From: ", "Sender: "))


def test_a_message_without_from_is_invalid() -> None:
    assert refusal(raw(TO, SUBJECT)) == (
        "invalid_request",
        "From: the field is missing; add the sender's address",
    )


@pytest.mark.parametrize(
    "field",
    [
        "From: shop@",
        "From: shop",
        "From: <shop@example.com",
        "From: nobody:;",
        "From: group: shop@example.com;",
        "Sender: @example.com",
        "Sender: group: shop@example.com;",
    ],
)
def test_an_address_that_is_none_is_invalid(field: str) -> None:
    others = () if field.startswith("From") else (FROM,)
    code, text = refusal(raw(*others, field, TO))
    assert code == "invalid_request"
    assert text.startswith(f"{field.partition(':')[0]}: ")


def test_a_sender_that_is_the_address_of_from_is_fine() -> None:
    assert mime_validation.check(plain("Sender: SHOP@example.com")).sender.address == "shop@example.com"


@pytest.mark.parametrize(
    "written, domain",
    [
        ("", None),
        ("b@example.com", "example.com"),
        ("b@EXAMPLE.net", "example.net"),
        ("b@bücher.de", "xn--bcher-kva.de"),
    ],
)
def test_the_domain_of_the_envelope_sender_is_known(written: str, domain: str | None) -> None:
    assert mime_validation.check(raw(FROM, TO, sender=written)).envelope_domain == domain


def test_an_envelope_sender_that_is_no_address_is_invalid() -> None:
    code, text = refusal(raw(FROM, TO, sender="root@web1"))
    assert code == "invalid_request"
    assert text.startswith("MAIL FROM: 'root@web1' is not an email address")


# Recipients


def test_the_envelope_decides_who_gets_it_each_once_in_order() -> None:
    message = plain(
        "Cc: cc@example.org", "Bcc: bcc@example.org", to=("eve@example.org", "bob@x.org", "EVE@example.org")
    )
    checked = mime_validation.check(message)
    assert [mailbox.address for mailbox in checked.recipients] == ["eve@example.org", "bob@x.org"]
    assert [mailbox.address for mailbox in checked.to] == ["ada@example.org"]
    assert [mailbox.address for mailbox in checked.cc] == ["cc@example.org"]


def test_recipients_that_no_field_shows_are_blind_copies() -> None:
    message = plain("Cc: Bob <bob@example.org>", to=("ADA@example.org", "bob@example.org", "eve@example.org"))
    assert [mailbox.address for mailbox in mime_validation.check(message).bcc] == ["eve@example.org"]


@pytest.mark.parametrize("field", ["To: undisclosed-recipients:;", "To: someone, somewhere", "To:", "X-To: none"])
def test_to_is_not_needed_and_need_not_be_readable(field: str) -> None:
    checked = mime_validation.check(raw(FROM, field, SUBJECT))
    assert checked.to == ()
    assert checked.bcc == checked.recipients


@pytest.mark.parametrize("domain", ["example.org", "é.example", "xn--9ca.example"])
def test_a_field_with_more_than_a_hundred_addresses_is_not_read(domain: str) -> None:
    def to(count: int) -> str:
        return "To: " + ",\r\n ".join(f"p{number}@{domain}" for number in range(count))

    assert len(mime_validation.check(raw(FROM, to(100))).to) == 100
    assert mime_validation.check(raw(FROM, to(101))).to == ()


@pytest.mark.parametrize(
    "name",
    [
        *("to", "cc", "reply-to", "message-id", "date", "subject", "mime-version", "content-type"),
        "content-transfer-encoding",
    ],
)
def test_a_field_that_may_stand_once_is_refused_when_it_stands_twice(name: str) -> None:
    fields = [field for field in (FROM, TO, SUBJECT) if not field.lower().startswith(f"{name}:")]
    mime_validation.check(raw(*fields, f"{name}: a@example.org"))
    assert refusal(raw(*fields, f"{name}: a@example.org", f"{name.upper()}: a@example.org")) == (
        "invalid_request",
        f"{name}: the field occurs 2 times; send it once",
    )


def test_fifty_unique_recipients_are_allowed_and_no_more() -> None:
    assert len(mime_validation.check(plain(to=people(50) * 2)).recipients) == 50
    assert refusal(plain(to=people(51))) == (
        "invalid_request",
        "RCPT TO: 51 unique addresses; a message must have 1 to 50",
    )
    assert refusal(plain(to=())) == ("invalid_request", "RCPT TO: 0 unique addresses; a message must have 1 to 50")


def test_a_recipient_that_is_no_address_is_invalid() -> None:
    code, text = refusal(plain(to=("ada@example.org", "bob@")))
    assert (code, text.partition(":")[0]) == ("invalid_request", "RCPT TO")


# Subject


@pytest.mark.parametrize(
    "fields, subject",
    [
        ((), ""),
        (("Subject:",), ""),
        (("Subject:   ",), ""),
        (("Subject: Your\r\n order",), "Your order"),
        (("Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n =?utf-8?b?IGFuIGFsbGU=?=",), "Grüße an alle"),
        (("Subject: Grüße",), "Grüße"),
        (("Subject: =?utf-8?q?a=0D=0ABcc:_v=40x=00=E2=80=A8b?=",), "a  Bcc: v@x  b"),
    ],
)
def test_the_subject_is_kept_as_people_read_it(fields: tuple[str, ...], subject: str) -> None:
    assert mime_validation.check(raw(FROM, TO, *fields)).subject == subject


def test_a_subject_has_at_most_500_characters() -> None:
    folded = "Subject: " + "\r\n ".join(header_fields.encode_words("ü" * 500, room=60))
    assert mime_validation.check(raw(FROM, folded)).subject == "ü" * 500
    code, text = refusal(raw(FROM, "Subject: " + "x" * 501))
    assert (code, text) == ("invalid_request", "subject: has 501 characters; 1 to 500 characters on one line")


# Tags and other fields of ours


def test_each_line_is_a_tag_and_duplicates_collapse() -> None:
    checked = mime_validation.check(
        plain("X-Service-Tag: welcome", "x-service-tag: =?utf-8?q?b=C3=BCro?=", "X-Service-Tag:  welcome ")
    )
    assert checked.tags == ("welcome", "büro")


@pytest.mark.parametrize(
    "tag",
    ["", "x" * 129, "=?utf-8?q?a=0D=0Ab?=", "=?utf-8?q?a=E2=80=AEb?=", "a\tb", "=?utf-8?q?=3D=3Futf-8=3Fq=3Fa=3F=3D?="],
)
def test_a_tag_that_is_none_is_refused(tag: str) -> None:
    code, text = refusal(plain("X-Service-Tag: good", f"X-Service-Tag: {tag}"))
    assert code == "invalid_request"
    assert text.startswith("X-Service-Tag[1]: ")


def test_twenty_tags_are_allowed_and_no_more() -> None:
    tags = [f"X-Service-Tag: tag{number}" for number in range(21)]
    assert len(mime_validation.check(plain(*tags[:20])).tags) == 20
    assert refusal(plain(*tags))[1] == "X-Service-Tag: 21 tags; at most 20 are allowed"


@pytest.mark.parametrize("name", ["X-Service-Tags", "x-service-", "X-SERVICE-Key"])
def test_an_unknown_field_of_ours_is_refused_by_its_name(name: str) -> None:
    code, text = refusal(plain(f"{name}: x"))
    assert code == "invalid_request"
    assert text.startswith(f"{name}: unknown field")


# Idempotency-Key


@pytest.mark.parametrize(
    "fields, key",
    [
        ((), None),
        (("Idempotency-Key: order-1",), "order-1"),
        (("idempotency-key:\r\n =?utf-8?q?b=C3=BCro?=",), "büro"),
        (("Idempotency-Key: " + "k" * 255,), "k" * 255),
    ],
)
def test_a_key_is_read(fields: tuple[str, ...], key: str | None) -> None:
    assert mime_validation.check(plain(*fields)).key == key


@pytest.mark.parametrize(
    "fields",
    [
        ("Idempotency-Key:",),
        ("Idempotency-Key: " + "k" * 256,),
        ("Idempotency-Key: a", "Idempotency-Key: a"),
        ("Idempotency-Key: =?utf-8?q?a=00b?=",),
    ],
)
def test_a_bad_key_is_refused(fields: tuple[str, ...]) -> None:
    code, text = refusal(plain(*fields))
    assert (code, text.partition(":")[0]) == ("invalid_request", "Idempotency-Key")


# Template


def test_a_template_and_its_variables_are_read() -> None:
    folded = 'X-Service-Variables: {"name": "Ada", "a": 1,\r\n "b": 2.5, "c": true, "d": "ü"}'
    template = mime_validation.check(plain("X-Service-Template: welcome", folded)).template
    assert template is not None
    assert template.alias == "welcome"
    assert template.variables == {"name": "Ada", "a": 1, "b": 2.5, "c": True, "d": "ü"}
    assert template.variables["c"] is True


def test_variables_that_a_library_has_encoded_are_read() -> None:
    words = "\r\n ".join(header_fields.encode_words('{"name": "Jürgen", "items": "' + "ä" * 100 + '"}', room=50))
    template = mime_validation.check(plain("X-Service-Template: a", f"X-Service-Variables: {words}")).template
    assert template is not None
    assert template.variables == {"name": "Jürgen", "items": "ä" * 100}


def test_what_is_json_already_is_not_decoded() -> None:
    value = {"name": "=?utf-8?q?Eve=22=2C=22link=22=3A=22https=3A//evil.example?=", "link": "https://example.com"}
    fields = ("X-Service-Template: a", f"X-Service-Variables: {json.dumps(value)}")
    assert mime_validation.check(plain(*fields)).template == mime_validation.Template("a", value)


def test_fields_are_read_as_pythons_library_folds_and_encodes_them() -> None:
    message = EmailMessage(policy=email.policy.SMTP)
    variables = {f"name{number}": "Jürgen (the first), <b>" for number in range(10)}
    message["From"] = "Büro <shop@example.com>"
    message["Subject"] = "Grüße, " * 30
    message["Idempotency-Key"] = "order-" + "1" * 200
    message["X-Service-Tag"] = "t" * 100
    message["X-Service-Template"] = "welcome"
    message["X-Service-Variables"] = json.dumps(variables)
    checked = mime_validation.check(statuses.RawMessage("", ("ada@example.org",), message.as_bytes(), "by x"))
    assert (checked.sender.display_name, checked.subject) == ("Büro", ("Grüße, " * 30).strip())
    assert (checked.key, checked.tags) == ("order-" + "1" * 200, ("t" * 100,))
    assert checked.template == mime_validation.Template("welcome", variables)


@pytest.mark.parametrize(
    "fields, start",
    [
        (("X-Service-Variables: {}",), "X-Service-Variables: only allowed with X-Service-Template"),
        (("X-Service-Template: Wel come",), "X-Service-Template: must be 1 to 64 of the characters"),
        (("X-Service-Template:",), "X-Service-Template: must be 1 to 64 of the characters"),
        (("X-Service-Template: a", "X-Service-Template: a"), "X-Service-Template: the field occurs 2 times"),
        (("X-Service-Template: a", "X-Service-Variables:"), "X-Service-Variables: "),
        (("X-Service-Template: a", "X-Service-Variables: {"), "X-Service-Variables: this is not JSON"),
        (("X-Service-Template: a", "X-Service-Variables: []"), "X-Service-Variables: expected a JSON object"),
        (("X-Service-Template: a", 'X-Service-Variables: {"a": 1, "a": 2}'), "X-Service-Variables: the member 'a'"),
        (("X-Service-Template: a", 'X-Service-Variables: {"a": null}'), "X-Service-Variables: the value of 'a'"),
        (("X-Service-Template: a", 'X-Service-Variables: {"a": "\\ud800"}'), "X-Service-Variables: "),
    ],
)
def test_a_bad_template_or_bad_variables_are_refused(fields: tuple[str, ...], start: str) -> None:
    code, text = refusal(plain(*fields))
    assert code == "invalid_request"
    assert text.startswith(start)


# The message as a whole


def test_a_hundred_hosts_are_a_loop() -> None:
    received = ["Received: from a by b; Fri, 15 Jan 2027 08:00:00 +0000"] * 100
    mime_validation.check(plain(*received[:99]))
    with pytest.raises(errors.MailLoop, match="Received: 100 fields") as refused:
        mime_validation.check(plain(*received))
    assert refused.value.smtp_reply == "554 5.4.6"


@pytest.mark.parametrize(
    "content", [b"", b"no header\r\n\r\n", b"From: a@example.com\nTo: b\r\n\r\n", b"F: \xff\r\n\r\n"]
)
def test_what_is_no_message_is_refused(content: bytes) -> None:
    code, text = refusal(statuses.RawMessage("", ("ada@example.org",), content, "by x"))
    assert code in {"invalid_request", "forbidden"}
    assert text.startswith(("message: ", "From: "))


@given(st.binary(max_size=300), st.sampled_from([b"", b"From: shop@example.com\r\n"]))
def test_whatever_comes_is_checked_or_refused(content: bytes, head: bytes) -> None:
    message = statuses.RawMessage("", ("ada@example.org",), head + content, "by x")
    # Any other exception is a bug.
    with contextlib.suppress(errors.InvalidRequest, errors.Forbidden):
        assert mime_validation.check(message).sender.domain
