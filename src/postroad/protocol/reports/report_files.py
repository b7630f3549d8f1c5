"""The files of aggregate reports: the attachments of a mail that may be one, and what is in them.

DMARC reports come in gzip, from some receivers in ZIP, and rarely as they are (RFC 9990, RFC 7489 section 7.2.1.1); TLS
reports in gzip or as they are (RFC 8460 section 5). Media types and names of files are often wrong, so the first octets
decide. A file is unpacked piece by piece and never as a whole, and an archive in an archive is not opened.
"""

import io
import itertools
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

from postroad.protocol.mime import part_walker, report_parser, transfer_encoding

# XML of reports shrinks to a twentieth or less: so much holds more rows than are read, and bounds the names of files
# that an archive can list.
MAX_BYTES: Final = 4 * 1024 * 1024
MAX_UNPACKED_BYTES: Final = 32 * 1024 * 1024
PIECE_BYTES: Final = 64 * 1024
# A mail has one report; beside it there are texts, and sometimes a picture or a key.
MAX_ATTACHMENTS: Final = 4

_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
# Expects the header of gzip and checks its sum (zlib's manual, inflateInit2).
_GZIP_WINDOW: Final = zlib.MAX_WBITS | 16
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED: Final = 0x1
# Some archives of a Mac have a second file about the first one.
_ABOUT_FILES: Final = "__MACOSX/"
# What the library raises for archives of a liar; each was found with changed octets.
_ZIP_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
# For people, unless they have the name of a report.
_PROSE: Final = frozenset({"text/plain", "text/html", "text/rfc822-headers"})
_NAMES: Final = (".xml", ".json", ".gz", ".zip")


class ReportError(ValueError):
    """The mail or file is not a report that we read. The message says why, and does not repeat what is in it."""


def attachments(mail: bytes) -> Iterator[bytes]:
    """The octets of what may be a report, in order; a mail without parts may be one itself."""
    leaves = filter(_may_be_report, part_walker.Walker(mail, report_parser.BOUNDS).leaves())
    for leaf in itertools.islice(leaves, MAX_ATTACHMENTS):
        encoding = leaf.first("content-transfer-encoding").lower()
        yield transfer_encoding.decode(mail[leaf.body : leaf.end], encoding, repair=True)


def unpack(content: bytes) -> Iterator[bytes]:
    """The pieces of the one file that is in an attachment. Raises ReportError, also after some of them."""
    if len(content) > MAX_BYTES:
        raise ReportError("the file is larger than 4 MiB")
    if content.startswith(_GZIP):
        pieces = _gunzip(content)
    elif content.startswith(_ZIP):
        pieces = _unzip(content)
    else:
        pieces = (content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES))
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_UNPACKED_BYTES:
            raise ReportError("the file is larger than 32 MiB when unpacked")
        yield piece


def _may_be_report(leaf: part_walker.Entity) -> bool:
    if leaf.boundary or leaf.content_type.startswith("message/"):
        return False
    _, parameters = part_walker.read_parameters(leaf.first("content-disposition"))
    name = parameters.get("filename") or leaf.parameters.get("name", "")
    return leaf.content_type not in _PROSE or name.lower().endswith(_NAMES)


def _gunzip(content: bytes) -> Iterator[bytes]:
    """One member, as all senders write it: a file of 200,000 empty ones would take seconds."""
    stream = zlib.decompressobj(_GZIP_WINDOW)
    for at in range(0, len(content), PIECE_BYTES):
        rest = content[at : at + PIECE_BYTES]
        while rest and not stream.eof:
            try:
                yield stream.decompress(rest, PIECE_BYTES)
            except zlib.error:
                raise ReportError("the gzip file is damaged") from None
            rest = stream.unconsumed_tail
    if not stream.eof:
        raise ReportError("the gzip file is not complete")


def _unzip(content: bytes) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(_only_file(archive)) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
    except ReportError:
        raise
    except _ZIP_ERRORS:
        raise ReportError("the ZIP archive is damaged") from None


def _only_file(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    files = [file for file in archive.infolist() if not (file.is_dir() or file.filename.startswith(_ABOUT_FILES))]
    if len(files) != 1:
        raise ReportError(f"the ZIP archive has {len(files)} files instead of one")
    if files[0].flag_bits & _ENCRYPTED:
        raise ReportError("the ZIP archive is encrypted")
    if files[0].compress_type not in _METHODS:
        raise ReportError("the ZIP archive is compressed in another way than deflate")
    return files[0]
