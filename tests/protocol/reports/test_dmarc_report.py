"""DMARC reports are read whatever their variant, and nothing in one can raise, expand or grow without bound."""

import gzip
import tracemalloc
from collections.abc import Iterable

import pytest

from postroad.protocol.reports import aggregate_reports, dmarc_report, report_files
from tests.fuzz import target

RECORD = """
<record>
  <row>
    <source_ip>192.0.2.1</source_ip>
    <count>2</count>
    <policy_evaluated>
      <disposition>quarantine</disposition><dkim>fail</dkim><spf>pass</spf>
      <reason><type>mailing_list</type></reason><reason><type>arc</type><comment>x</comment></reason>
    </policy_evaluated>
  </row>
  <identifiers>
    <envelope_to>Example.NET</envelope_to>
    <envelope_from>bounces.example.com</envelope_from><header_from>Example.com.</header_from>
  </identifiers>
  <auth_results>
    <dkim><domain>esp.example</domain><selector>a</selector><result>pass</result></dkim>
    <dkim><domain>example.com</domain><selector>b</selector><result>permerror</result></dkim>
    <spf><domain>helo.example.com</domain><scope>helo</scope><result>none</result></spf>
    <spf><domain>bounces.example.com</domain><scope>mfrom</scope><result>pass</result></spf>
  </auth_results>
</record>
"""
METADATA = """
<report_metadata>
  <org_name>Example Mail</org_name><email>dmarc@mail.example</email><report_id>abc.1</report_id>
  <date_range><begin>1767225600</begin><end>1767311999</end></date_range>
</report_metadata>
"""
POLICY = """
<policy_published>
  <domain>example.com</domain><adkim>s</adkim><aspf>r</aspf><p>none</p><sp>reject</sp><pct>50</pct>
</policy_published>
"""
WHOLE = f"<feedback>{METADATA}{POLICY}{RECORD}</feedback>"


def read(xml: str | bytes) -> dmarc_report.Report:
    report = aggregate_reports.read_file(xml.encode() if isinstance(xml, str) else xml)
    assert isinstance(report, dmarc_report.Report)
    return report


def refusal(xml: str | bytes) -> str:
    with pytest.raises(report_files.ReportError) as refused:
        read(xml)
    assert target.is_sayable(str(refused.value), most=100)
    return str(refused.value)


def test_a_report_is_read_whole() -> None:
    assert read(WHOLE) == dmarc_report.Report(
        organization="Example Mail",
        contact="dmarc@mail.example",
        id="abc.1",
        begin=1_767_225_600,
        end=1_767_311_999,
        policy=dmarc_report.Policy(
            "example.com", "none", "reject", has_strict_dkim=True, has_strict_spf=False, percent=50, is_test=False
        ),
        rows=(
            dmarc_report.Row(
                source="192.0.2.1",
                count=2,
                disposition=dmarc_report.Disposition.QUARANTINE,
                dkim=False,
                spf=True,
                header_from="example.com",
                envelope_from="bounces.example.com",
                envelope_to="example.net",
                signers=("esp.example",),
                spf_domain="bounces.example.com",
                overrides=(dmarc_report.Override.MAILING_LIST, dmarc_report.Override.OTHER),
            ),
        ),
        invalid_rows=0,
    )


def test_namespaces_and_extensions_change_nothing() -> None:
    plain = read(WHOLE)
    assert read(WHOLE.replace("<feedback>", '<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">')) == plain
    prefixed = WHOLE.replace("<feedback>", '<d:feedback xmlns:d="urn:d">').replace("</feedback>", "</d:feedback>")
    assert read(prefixed) == plain
    other = '<x:row xmlns:x="urn:x"><x:count>9</x:count></x:row><count>9</count>'
    assert read(WHOLE.replace("<record>", f"<record>{other}")) == plain


@pytest.mark.parametrize(
    "declared, codec",
    [
        ("UTF-8", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("UTF-16LE", "utf-16"),
        ("iso-8859-1", "latin-1"),
        ("windows-1252", "windows-1252"),
        ("us-ascii", "ascii"),
    ],
)
def test_a_report_is_in_the_encoding_that_it_declares(declared: str, codec: str) -> None:
    xml = f'<?xml version="1.0" encoding="{declared}"?>{WHOLE}'
    assert read(xml.encode(codec)) == read(WHOLE)
    assert read(gzip.compress(xml.encode(codec))) == read(WHOLE)


@pytest.mark.parametrize("declared", ["gb18030", "x-none", "idna", "unicode_escape", "zlib", "ebcdic-cp-us", "utf-32"])
def test_another_encoding_is_refused(declared: str) -> None:
    assert (
        refusal(f'<?xml version="1.0" encoding="{declared}"?>{WHOLE}') == "the XML is in an encoding that is not read"
    )


def test_a_wrong_encoding_is_not_well_formed() -> None:
    xml = f'<?xml version="1.0" encoding="UTF-16"?>{WHOLE}'
    assert refusal(xml) == "it is not well-formed XML (line 1)"
    assert refusal(xml.replace("UTF-16", "UTF-8").replace("Mail", "caf\xe9").encode("latin-1")).endswith("(line 3)")
    assert refusal(xml.encode("utf-16")[:-1]).startswith("it is not well-formed XML")


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "xml",
    [
        f'<!DOCTYPE feedback [<!ENTITY l0 "ha">{LAUGHS}]>' + WHOLE.replace("Example Mail", "&l9;"),
        '<!DOCTYPE feedback [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + WHOLE.replace("Example Mail", "&a;"),
        '<!DOCTYPE feedback SYSTEM "http://127.0.0.1/a.dtd">' + WHOLE,
        '<?xml version="1.0" standalone="no"?><!DOCTYPE feedback [<!ENTITY % a SYSTEM "http://127.0.0.1/"> %a;]>'
        + WHOLE,
        "<!DOCTYPE feedback>" + WHOLE,
    ],
)
def test_a_document_type_is_refused_where_it_begins(xml: str) -> None:
    assert refusal(xml) == "the XML has a document type, which no report needs"
    assert refusal(xml.encode("utf-16")) == "the XML has a document type, which no report needs"


def test_an_unknown_entity_is_not_well_formed() -> None:
    assert refusal(WHOLE.replace("Example Mail", "&nbsp;")) == "it is not well-formed XML (line 3)"


def test_depth_elements_and_tags_are_bounded() -> None:
    assert refusal("<feedback>" + "<a>" * 1_000_000) == "the XML is nested too deeply"
    flood = gzip.compress(b"<feedback>" + b"<a/>" * 1_500_000 + b"</feedback>")
    assert refusal(flood) == "the XML has too many elements"
    long = "the XML has a tag or comment of more than 256 KiB"
    assert refusal(gzip.compress(b"<feedback a='" + b"x" * 30_000_000)) == long
    assert refusal(b"<feedback><!--" + b"-x" * 300_000) == long
    assert refusal(b"<" + b"f" * 600_000) == long


def test_50000_rows_are_read_and_100000_refused() -> None:
    row = (
        "<record><row><source_ip>192.0.2.1</source_ip><count>1</count></row>"
        "<identifiers><header_from>example.com</header_from></identifiers></record>"
    )
    most = f"<feedback>{METADATA}{POLICY}{row * 50_000}</feedback>"
    assert len(read(gzip.compress(most.encode())).rows) == 50_000
    many = f"<feedback>{METADATA}{POLICY}{'<record/>' * 100_000}</feedback>"
    assert refusal(many) == "the report has more than 50,000 rows"


def test_long_texts_take_no_memory() -> None:
    xml = gzip.compress(WHOLE.replace("Example Mail", "x" * 30_000_000).encode())
    tracemalloc.start()
    assert read(xml).organization == "x" * 255
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


@pytest.mark.parametrize(
    "old, new",
    [
        ("192.0.2.1", "192.0.2.256"),
        ("192.0.2.1", "fe80::1%eth0"),
        ("192.0.2.1", "mail.example.com"),
        ("<count>2<", "<count>0<"),
        ("<count>2<", "<count>-2<"),
        ("<count>2<", "<count>\u0662<"),
        ("<count>2<", f"<count>{'9' * 100_000}<"),
        ("Example.com.", ""),
        ("Example.com.", "ex ample"),
    ],
)
def test_a_row_without_address_count_or_domain_is_counted_as_invalid(old: str, new: str) -> None:
    bad = RECORD.replace(old, new)
    report = read(f"<feedback>{METADATA}{POLICY}{bad}{RECORD}{bad}</feedback>")
    assert (report.invalid_rows, len(report.rows)) == (2, 1)
    assert refusal(f"<feedback>{METADATA}{POLICY}{bad}</feedback>") == "the report has no valid row"


def test_what_receivers_are_known_to_write_is_read() -> None:
    odd = {
        "192.0.2.1": "::ffff:192.0.2.1",
        "<disposition>quarantine": "<disposition>Pass",
        "<dkim>fail</dkim><spf>pass": "<dkim></dkim><spf>Pass",
        "mailing_list": "",
        "<result>none": "<result>hardfail",
        "<envelope_from>bounces.example.com": "<envelope_from>ada@bounces.example.com",
        "<envelope_to>Example.NET": "<envelope_to>&lt;>",
    }
    xml = WHOLE
    for old, new in odd.items():
        assert old in xml
        xml = xml.replace(old, new)
    (row,) = read(xml).rows
    assert (row.source, row.disposition, row.dkim, row.spf) == ("192.0.2.1", "none", False, True)
    assert (row.overrides, row.envelope_from, row.envelope_to) == (("other",), "bounces.example.com", "")


def test_the_first_of_equal_names_counts_and_ten_signers_are_kept() -> None:
    twice = WHOLE.replace("<count>2</count>", "<count>2</count><count>900</count>")
    assert read(twice) == read(WHOLE)
    signature = "<dkim><domain>d{}.example</domain><result>pass</result></dkim>"
    many = "<auth_results>" + "".join(signature.format(number) for number in range(50))
    (row,) = read(WHOLE.replace("<auth_results>", many)).rows
    assert row.signers == tuple(f"d{number}.example" for number in range(10))


def test_seven_reasons_are_looked_at() -> None:
    other = "<reason><type>x</type></reason>"
    for count, overrides in ((6, ("other", "forwarded")), (7, ("other",))):
        reasons = other * count + "<reason><type>Forwarded</type></reason><reason><type>forwarded</type></reason>"
        xml = RECORD.replace("<reason><type>mailing_list</type></reason>", "").replace("<reason>", f"{reasons}<reason>")
        (row,) = read(f"<feedback>{METADATA}{POLICY}{xml}</feedback>").rows
        assert row.overrides == overrides


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("<begin>1767225600", "<begin>", "the report is not about a time of at most 31 days"),
        ("<begin>1767225600", "<begin>1767312000", "the report is not about a time of at most 31 days"),
        ("<begin>1767225600", "<begin>1764633598", "the report is not about a time of at most 31 days"),
        ("<end>1767311999", f"<end>{'1' * 18}", "the report is not about a time of at most 31 days"),
        ("abc.1", "", "the report has no report_id of at most 255 characters"),
        ("abc.1", "a" * 256, "the report has no report_id of at most 255 characters"),
        ("<domain>example.com</domain><adkim>", "<adkim>", "the report does not say which domain it is about"),
        ("<domain>example.com</domain><adkim>", "<domain>192.0.2.1</domain><adkim>", "the report does not say which"),
        ("Example Mail</org_name><email>dmarc@mail.example", "</org_name><email>", "the report does not say who wrote"),
        ("feedback>", "html>", "the XML is not a DMARC report"),
    ],
)
def test_a_report_says_who_wrote_it_when_and_about_what(old: str, new: str, why: str) -> None:
    assert old in WHOLE
    assert refusal(WHOLE.replace(old, new)).startswith(why)


def test_texts_are_on_one_line_without_controls() -> None:
    report = read(WHOLE.replace("Example Mail", "A\n\u202eB&#x85;").replace("abc.1", "a\tb"))
    assert (report.organization, report.id) == ("A B", "a b")


@pytest.mark.parametrize("xml", [b"", b"unused", b"\xff\xfe", b"\0" * 99, b"PK\5\6" + bytes(18), WHOLE[:-1].encode()])
def test_what_is_not_xml_is_refused(xml: bytes) -> None:
    assert refusal(xml).startswith("it is not well-formed XML")


def test_pieces_of_any_size_give_the_same_report() -> None:
    def pieces(content: bytes, size: int) -> Iterable[bytes]:
        return (content[at : at + size] for at in range(0, len(content), size))

    for size in (1, 7, 1000):
        assert dmarc_report.read(pieces(WHOLE.encode(), size)) == read(WHOLE)
