"""Types of files: given ones are checked, missing ones come from the extension."""

import re

import hypothesis
import jsonschema_rs
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import content_types

STDLIB = jsonschema_rs.validator_for({"pattern": content_types.SCHEMA_PATTERN})


@pytest.mark.parametrize(
    "text, words",
    [
        ("image/png", ["image/png"]),
        ("application/vnd.ms-excel", ["application/vnd.ms-excel"]),
        ("text/csv; charset=utf-8", ["text/csv", "charset=utf-8"]),
        ("Message/RFC822; a=b", ["Message/RFC822", "a=b"]),
        ('text/csv;charset="utf-8" ; a="x; y=\\"z\\""', ["text/csv", 'charset="utf-8"', 'a="x; y=\\"z\\""']),
    ],
)
def test_a_type_is_taken_with_its_parameters(text: str, words: list[str]) -> None:
    assert content_types.check(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "",
        "png",
        "image/",
        "/png",
        "image/png;",
        "image/png; a",
        "image/png; a=",
        "image/png; =b",
        "image /png",
        "image/png\r\nX: y",
        "image/png\n",
        'image/png; a="x',
        'image/png; a="\r\n"',
        "image/pñg",
        "a/b; c=d e",
        "a/" + "b" * 254,
        'a/b; c="=?utf-8?q?x?="',
        "text/plain, text/html",
        "a/b; c=\x00",
    ],
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(content_types.ContentTypeError, match="a content type"):
        content_types.check(text)


@pytest.mark.parametrize("text", ["multipart/mixed", "MULTIPART/x; boundary=a", "message/rfc8222", "Message/partial"])
def test_composite_types_are_refused_with_a_hint(text: str) -> None:
    with pytest.raises(content_types.ContentTypeError, match="use 'application/octet-stream'"):
        content_types.check(text)


@pytest.mark.parametrize(
    "filename, guessed",
    [
        ("a.png", "image/png"),
        ("A.PDF", "application/pdf"),
        ("a.tar.gz", "application/gzip"),
        ("a.csv", "text/csv"),
        ("mail.eml", "message/rfc822"),
        ("a", "application/octet-stream"),
        ("png", "application/octet-stream"),
        ("", "application/octet-stream"),
        (".png", "image/png"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.unknown", "application/octet-stream"),
    ],
)
def test_a_missing_type_is_derived_from_the_extension(filename: str, guessed: str) -> None:
    assert content_types.guess(filename) == guessed


@hypothesis.given(st.text())
def test_a_guess_is_always_a_type_that_may_be_given(filename: str) -> None:
    content_types.check(content_types.guess(filename))


# By extension, as IANA or, where it knows none, common use has it.
GUESSED = """
7z=application/x-7z-compressed aac=audio/aac avi=video/x-msvideo avif=image/avif bmp=image/bmp
bz2=application/x-bzip2 css=text/css csv=text/csv doc=application/msword
docm=application/vnd.ms-word.document.macroEnabled.12
docx=application/vnd.openxmlformats-officedocument.wordprocessingml.document eml=message/rfc822
epub=application/epub+zip
flac=audio/flac gif=image/gif gpx=application/gpx+xml gz=application/gzip heic=image/heic heif=image/heif
htm=text/html html=text/html ico=image/vnd.microsoft.icon ics=text/calendar jpeg=image/jpeg jpg=image/jpeg
js=text/javascript json=application/json jsonl=application/jsonl log=text/plain m4a=audio/mp4 md=text/markdown
mkv=video/matroska mov=video/quicktime mp3=audio/mpeg mp4=video/mp4 mpeg=video/mpeg mpg=video/mpeg
odp=application/vnd.oasis.opendocument.presentation ods=application/vnd.oasis.opendocument.spreadsheet
odt=application/vnd.oasis.opendocument.text ogg=audio/ogg opus=audio/ogg otf=font/otf p7m=application/pkcs7-mime
p7s=application/pkcs7-signature pdf=application/pdf pgp=application/pgp-encrypted
pkpass=application/vnd.apple.pkpass png=image/png ppt=application/vnd.ms-powerpoint
pptx=application/vnd.openxmlformats-officedocument.presentationml.presentation ps=application/postscript
rar=application/vnd.rar rtf=application/rtf svg=image/svg+xml tar=application/x-tar tgz=application/gzip
tif=image/tiff tiff=image/tiff tsv=text/tab-separated-values ttf=font/ttf txt=text/plain vcf=text/vcard
wav=audio/wav webm=video/webm webp=image/webp woff=font/woff woff2=font/woff2 xls=application/vnd.ms-excel
xlsm=application/vnd.ms-excel.sheet.macroEnabled.12
xlsx=application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xml=application/xml xz=application/x-xz
yaml=application/yaml yml=application/yaml zip=application/zip zst=application/zstd
""".split()


@pytest.mark.parametrize("extension, kind", [pair.split("=") for pair in GUESSED])
def test_every_type_of_the_table_is_guessed_and_may_be_given(extension: str, kind: str) -> None:
    assert content_types.guess(f"a.{extension}") == kind
    assert content_types.check(kind) == [kind]


def test_no_other_type_is_guessed() -> None:
    assert len(content_types.TYPES) == len(GUESSED) == 77


@hypothesis.given(
    st.from_regex(content_types.SCHEMA_PATTERN[:-1] + r"\Z")
    | st.text('am/;= "\\\n?', max_size=20)
    | st.text("multiparmesgMULTI/x", max_size=12)
    | st.text("x8 ;=", max_size=5).map("message/rfc822".__add__)
)
def test_the_pattern_says_the_same_as_the_check(text: str) -> None:
    hypothesis.assume(len(text) <= 255)
    try:
        accepted = bool(content_types.check(text))
    except content_types.ContentTypeError:
        accepted = False
    assert STDLIB.is_valid(text) == accepted
    assert (re.search(content_types.SCHEMA_PATTERN[:-1] + r"\Z", text) is not None) == accepted
