"""Small languages in which strangers write: encoded words, parameters, templates, DNS records, forms, names of files.

Holds: each raises its own error or nothing; what is encoded is decoded to the same; names of files and values of
header fields have no control characters; a template without values says what it says.
"""

import contextlib
import re
from typing import Final

from postroad.protocol.dns import dmarc_record, mta_sts, spf_record, tag_lists
from postroad.protocol.mime import file_names, header_fields
from postroad.protocol.mime import part_walker as mime_parameters
from postroad.protocol.text import http_values, mustache, placeholders, sample_values
from tests.fuzz import target

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")


def check(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    header_fields.decode_words(text)
    words = header_fields.encode_words(text, room=40)
    assert header_fields.decode_words(" ".join(words)) == text
    kind, parameters = mime_parameters.read_parameters(text)
    assert kind == kind.lower()
    assert all(isinstance(value, str) for value in parameters.values())
    _check_template(text)
    _check_sections(text)
    _check_names(text)
    _check_records(data, text)
    with contextlib.suppress(http_values.FormError):
        assert len(http_values.read_form(data, limit=10)) <= 10
    value = _CONTROLS.sub("", text)
    for write in (
        header_fields.unstructured,
        header_fields.reencoded,
        header_fields.structured,
        header_fields.parameters,
    ):
        with contextlib.suppress(header_fields.HeaderError):
            _check_field(write("X-Test", value))


def _check_template(text: str) -> None:
    try:
        template = placeholders.parse(text)
    except placeholders.TemplateError as refusal:
        _check_error_text(str(refusal))
        return
    values = dict.fromkeys(template.names, "<&>")
    with contextlib.suppress(placeholders.RenderedTooLarge):
        assert template.render(values, escape_html=True).count("&lt;&amp;&gt;") >= len(template.placeholders)
        assert placeholders.parse(text) == template


def _check_sections(text: str) -> None:
    try:
        template = mustache.parse(text)
    except placeholders.SyntaxProblem as refusal:
        _check_error_text(str(refusal))
        return
    with contextlib.suppress(placeholders.TemplateError):
        template.render(sample_values.sample((template,), today="1 May 2026", year="2026"), escape_html=True)


def _check_error_text(refusal: str) -> None:
    assert target.is_sayable(refusal, most=1_000)


def _check_names(text: str) -> None:
    name = file_names.download_name(text)
    if name is not None:
        assert not _CONTROLS.search(name)
        assert "/" not in name
        assert "\\" not in name
        assert not _CONTROLS.search(file_names.download_disposition(name))


def _check_records(data: bytes, text: str) -> None:
    tag_lists.parse(text)
    mta_sts.policy_id([text, text])
    mta_sts.parse_policy(data)
    assert all(uri.isascii() for uri in mta_sts.report_uris([text]))
    with contextlib.suppress(dmarc_record.DmarcError):
        assert dmarc_record.policy_of(text) in {"none", "quarantine", "reject"}
    with contextlib.suppress(spf_record.SpfError):
        record = spf_record.parse(text)
        assert spf_record.parse(text) == record
    merged = spf_record.merged([text], ["include:_spf.example.com"])
    assert spf_record.is_spf(merged)
    assert "include:_spf.example.com" in merged.lower()


def _check_field(field: str) -> None:
    lines = field.removesuffix("\r\n").split("\r\n")
    assert all(line.startswith((" ", "\t")) and line.strip() for line in lines[1:])
    assert max(len(line.encode()) for line in lines) <= 998
    assert not any(_CONTROLS.search(line.replace("\t", "")) for line in lines)


TARGET: Final = target.Target(
    name="texts",
    open=target.plain(check),
    watches=(
        "protocol/mime/header_fields.py",
        "protocol/mime/part_walker.py",
        "protocol/text/placeholders.py",
        "protocol/text/mustache.py",
        "protocol/dns/spf_record.py",
        "protocol/dns/tag_lists.py",
        "protocol/dns/mta_sts.py",
        "protocol/text/http_values.py",
        "protocol/mime/file_names.py",
    ),
    seeds=(
        b"{{#a}}\n {{b.c}}{{^d}}x{{/d}}{{.}}\n{{/a}}\n{{{e}}}{{& f}}{{! g }}",
        b"=?utf-8?b?SsO8cmdlbg==?= =?utf-8?q?_x=C3?= =?utf-8?q?=BC?= =?iso-2022-jp?B?GyRC?= end",
        b'text/plain; charset=utf-8; name*0*=utf-8\'de\'%C3%BC; name*1=x; boundary="a\\"b"',
        b"Hello {{name}}, {{ order_id }} {% if %}",
        b"v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 a:x.example/24//64 mx include:_spf.example.com redirect=b.example",
        b"v=DMARC1; p=reject; rua=mailto:d@example.com",
        b"version: STSv1\r\nmode: enforce\r\nmx: *.example.com\r\nmax_age: 604800\r\n",
        b"v=STSv1; id=20260101;",
        b"a=1&b=%C3%BC+x&c&=d&a=%zz",
        b"../../etc/passwd\x00.html",
        "Ein langer Betreff mit Umlauten äöü und noch viel mehr Wörtern, der gefaltet werden muss 漢字".encode(),
    ),
    max_octets=1_000,
    steps=(20_000, 400),
)
