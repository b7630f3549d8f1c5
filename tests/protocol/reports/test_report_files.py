"""Files of reports are unpacked in bounded pieces, and bombs and broken archives are refused with a sentence."""

import gzip
import io
import random
import struct
import zipfile

import pytest

from postroad.protocol.reports import report_files
from tests.protocol.reports import sample_reports

MIB = 1024 * 1024


def unpacked(content: bytes) -> bytes:
    return b"".join(report_files.unpack(content))


def refusal(content: bytes) -> str:
    with pytest.raises(report_files.ReportError) as refused:
        unpacked(content)
    return str(refused.value)


def test_every_packing_gives_the_same_octets_in_small_pieces() -> None:
    content = random.Random(1).randbytes(300_000) + b"<end/>" * 20_000
    stored = sample_reports.zipped(content, method=zipfile.ZIP_STORED)
    for packed in (content, gzip.compress(content), sample_reports.zipped(content), stored):
        pieces = list(report_files.unpack(packed))
        assert b"".join(pieces) == content
        assert max(map(len, pieces)) <= 65_536


def test_a_file_of_more_than_4_mib_is_not_unpacked() -> None:
    assert unpacked(b" " * 4 * MIB) == b" " * 4 * MIB
    assert refusal(b" " * (4 * MIB + 1)) == "the file is larger than 4 MiB"


def test_bombs_end_at_32_mib() -> None:
    assert len(unpacked(gzip.compress(bytes(32 * MIB)))) == 32 * MIB
    bomb = bytes(33 * MIB)
    for packed in (gzip.compress(bomb), sample_reports.zipped(bomb)):
        assert len(packed) < 40_000
        assert refusal(packed) == "the file is larger than 32 MiB when unpacked"


def test_a_size_that_an_archive_gives_is_not_believed() -> None:
    content = b"<feedback/>" * 1000
    packed = sample_reports.zipped(content)
    size = struct.pack("<L", len(content))
    assert size in packed
    assert refusal(packed.replace(size, struct.pack("<L", 1))) == "the ZIP archive is damaged"
    assert unpacked(packed.replace(size, struct.pack("<L", 2**31))) == content


def archive(*files: tuple[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as writer:
        for name, content in files:
            writer.writestr(name, content)
    return packed.getvalue()


def test_an_archive_has_one_file() -> None:
    assert unpacked(archive(("folder/", b""), ("__MACOSX/._a.xml", b"x"), ("../../a.xml", b"here"))) == b"here"
    assert refusal(archive(("a.xml", b"1"), ("b.xml", b"2"))) == "the ZIP archive has 2 files instead of one"
    assert refusal(archive(("folder/", b""))) == "the ZIP archive has 0 files instead of one"


def test_other_methods_and_encryption_are_refused() -> None:
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed = sample_reports.zipped(b"<feedback/>", method=method)
        assert refusal(packed) == "the ZIP archive is compressed in another way than deflate"
    encrypted = bytearray(sample_reports.zipped(b"<feedback/>"))
    encrypted[encrypted.index(b"PK\1\2") + 8] |= 1
    assert refusal(bytes(encrypted)) == "the ZIP archive is encrypted"


def test_an_archive_in_an_archive_stays_packed() -> None:
    inner = sample_reports.zipped(b"<feedback/>")
    assert unpacked(sample_reports.zipped(inner)) == inner
    assert unpacked(gzip.compress(gzip.compress(b"<feedback/>", mtime=0))) == gzip.compress(b"<feedback/>", mtime=0)


def test_an_archive_of_names_alone_is_refused() -> None:
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 0, 20, *[0] * 8, 1, *[0] * 6) + b"a"
    count = 4 * MIB // len(entry) - 10
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count & 0xFFFF, count & 0xFFFF, count * len(entry), 4, 0)
    assert refusal(b"PK\3\4" + entry * count + end) == f"the ZIP archive has {count} files instead of one"


def test_gzip_is_complete_and_of_one_member() -> None:
    packed = gzip.compress(b"<feedback/>")
    assert refusal(packed[:-1]) == "the gzip file is not complete"
    assert refusal(packed[:-8] + bytes(8)) == "the gzip file is damaged"
    # What follows is not looked at: some senders fill blocks with zeros.
    assert unpacked(packed + bytes(100)) == b"<feedback/>"
    assert unpacked(packed + gzip.compress(b"more")) == b"<feedback/>"


def test_changed_octets_raise_nothing_else() -> None:
    chance = random.Random(1)
    content = b"<feedback>" + chance.randbytes(200) + b"</feedback>"
    refused = 0
    for packed in (gzip.compress(content, mtime=0), sample_reports.zipped(content)):
        for _ in range(2_000):
            changed = bytearray(packed)
            for _ in range(chance.randint(1, 3)):
                changed[chance.randrange(2, len(changed))] = chance.randrange(256)
            try:
                unpacked(bytes(changed))
            except report_files.ReportError:
                refused += 1
    assert refused > 2_000
