"""Security cases G5 to G9: files pass through; nobody opens them, believes their names, or fetches them.

Over HTTP and SMTP, to the next host, octet by octet. `N` are neighbours of the written cases.
"""

import base64
import email
import email.policy
import functools
import io
import itertools
import struct
import tracemalloc
import zipfile
import zlib
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from postroad.model.mail import limits
from postroad.model.people import callers
from tests import smtp_peers
from tests.api import management
from tests.reliability import profile
from tests.security.test_submission import MEBIBYTE
from tests.security.whole_service import BEGIN, HEADER, WholeService

HTML = {"text": None, "html": "<p>Hello</p>"}


def attached(content: bytes = b"hi", **members: Any) -> dict[str, Any]:
    """A file as the API takes it."""
    return {"filename": "a.txt", "content": base64.b64encode(content).decode(), **members}


def with_file(filename: str, content: bytes = b"hi", *, content_id: str = "a") -> bytes:
    """A message with a file as a client writes it, and the file's name as raw as it can be."""
    encoded = base64.encodebytes(content).replace(b"\n", b"\r\n")
    return (
        HEADER
        + b'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n'
        + f'Content-Type: application/octet-stream; name="{filename}"\r\n'.encode()
        + f'Content-Disposition: attachment; filename="{filename}"\r\nContent-ID: <{content_id}>\r\n'.encode()
        + b"Content-Transfer-Encoding: base64\r\n\r\n"
        + encoded
        + b"--b--\r\n"
    )


def files_of(content: bytes) -> list[tuple[str | None, bytes]]:
    """The files that a reader finds in a message, with their names."""
    parsed = email.message_from_bytes(content, policy=email.policy.default)
    assert isinstance(parsed, EmailMessage)
    parts = [part for part in parsed.walk() if part.get_filename() is not None]
    return [(part.get_filename(), part.get_payload(decode=True)) for part in parts]  # type: ignore[misc]


def below(folder: Path) -> set[str]:
    """The names of everything in a folder."""
    return {path.name for path in folder.rglob("*")}


# G5: names of files.


CONTENT_IDS = ("../../routes.js", "..\\routes.js", "/etc/passwd")
PATH_NAMES = ("../../etc/cron.d/x", "C:\\x", "photo\u202egpj.exe")


async def test_g5_names_make_no_files_and_are_served_under_generated_ones(
    service: WholeService, tmp_path: Path
) -> None:
    """G5: Content-ID `../../routes.js` and names with paths, by HTTP and SMTP: no file has them; ours are generated."""
    before = below(tmp_path)
    answers = [await service.post(**HTML, attachments=[attached(content_id=one)]) for one in CONTENT_IDS]
    assert {answer.status_code for answer in answers} <= {202, 400}
    for content_id, name in itertools.product(CONTENT_IDS, PATH_NAMES):
        assert (await service.hand_in(with_file(name, content_id=content_id))).startswith("250 ")
    arrived = await service.settled()
    by_http = sum(answer.status_code == 202 for answer in answers)
    assert len(arrived) == len(CONTENT_IDS) * len(PATH_NAMES) + by_http
    assert {name.partition(".db")[0] for name in below(tmp_path) - before} <= {"postroad"}
    token = await management.token(service.ctx, service.account.id, callers.Role.OWNER)
    for each in arrived:
        path = f"/v1/messages/{each.message.id}/raw"
        shown = await service.http.get(path, headers={"Authorization": f"Bearer {token}"}, auth=None)
        assert shown.status_code == 200
        assert shown.content == each.taken.content
        assert shown.headers["Content-Disposition"] == f'attachment; filename="{each.message.id}.eml"'
        assert shown.headers["X-Content-Type-Options"] == "nosniff"
        assert shown.headers["Content-Type"] == "message/rfc822"


# G6: contents of files.


async def test_g6_one_byte_over_the_limit_is_too_large_however_it_is_spread(service: WholeService) -> None:
    """G6: 10 MiB of assembled MIME, decoded files and their encoding together: 202; one byte more: 413."""
    # Lines that need no encoding, so that each character more is one octet more.
    files = [attached(bytes(3 * MEBIBYTE), filename=f"{number}.bin") for number in range(2)]
    line = "x" * 60 + "\r\n"
    first = await service.post(attachments=files, text=line * 1_000)
    assert first.status_code == 202
    ((message, _, _),) = await service.stored()
    lines, rest = divmod(limits.MIME_BYTES - message.size, len(line))
    full = line * (1_000 + lines - 2) + "x" * (40 + rest) + "\r\n" + "x" * (2 * len(line) - 44) + "\r\n"
    assert len(full) == len(line) * (1_000 + lines) + rest
    assert (await service.post(attachments=files, text=full)).status_code == 202
    await service.refuse(413, "payload_too_large", attachments=files, text="x" + full)
    many = [attached(bytes(MEBIBYTE), filename=f"{number}.bin") for number in range(20)]
    await service.refuse(413, "payload_too_large", attachments=many)
    assert sorted(each.message.size for each in await service.settled()) == [message.size, limits.MIME_BYTES]


# G7: bombs of structure.


def nested(depth: int) -> bytes:
    """Multiparts inside multiparts, each with a boundary of its own."""
    opening = [
        b'Content-Type: multipart/mixed; boundary="%d"\r\n\r\n--%d\r\n' % (level, level) for level in range(depth)
    ]
    return b"".join(opening) + b"\r\nhi\r\n" + b"".join(b"--%d--\r\n" % level for level in reversed(range(depth)))


MULTIPART = HEADER + b'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n'
DEEP_BOMBS = {
    "10,000 nested multiparts": HEADER + b"MIME-Version: 1.0\r\n" + nested(10_000),
    "10,000 nested multiparts that never end": HEADER + nested(10_000).partition(b"hi")[0],
    "messages in messages": HEADER + b"Content-Type: message/rfc822\r\n\r\n" * 10_000,
}
# In `make test`, enough that quadratic work would take minutes.
WIDE_COUNT = 1_000_000 if profile.IS_LONG else 100_000
WIDE_BOMBS = {
    "parts without end": MULTIPART + b"--b\r\n\r\n" * WIDE_COUNT + b"--b--\r\n",
    "lines that look like boundaries": MULTIPART + b"--a\r\n" * WIDE_COUNT,
    "fields in a part without end": MULTIPART + b"--b\r\n" + b"X: 1\r\n" * WIDE_COUNT + b"\r\nhi\r\n--b--\r\n",
    "a boundary announced again and again": MULTIPART
    + b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" * 100_000,
}


async def keep(service: WholeService, bomb: bytes, *, begin: bytes = BEGIN, verb: str = "DATA") -> str:
    """Hand in a bomb with a key, twice: it has to be compared with itself. Gives the id of the one message."""
    keyed = b"Idempotency-Key: %d\r\n" % hash(bomb) + bomb
    reply = await service.hand_in(keyed, begin=begin, verb=verb)
    assert reply.startswith("250 2.0.0 OK: queued as em_")
    assert await service.hand_in(keyed, begin=begin, verb=verb) == reply
    return reply.split()[-1]


@pytest.mark.parametrize("verb", ["DATA", "BDAT"])
async def test_g7_depth_without_end_passes_unopened(service: WholeService, verb: str) -> None:
    """G7: 10,000 nested multiparts: nobody takes them apart, and they arrive as they came."""
    kept = {await keep(service, bomb, verb=verb): bomb for bomb in DEEP_BOMBS.values()}
    arrived = await service.settled()
    assert {each.message.id for each in arrived} == kept.keys()
    assert all(each.taken.content.endswith(kept[each.message.id]) for each in arrived)


async def test_g7_breadth_without_end_passes_unopened(service: WholeService) -> None:
    """G7: 1 M parts, 1 M headers in a part: taken as they are; their destination does not exist, so they stay."""
    begin = BEGIN.replace(b"ada@example.net", b"ada@nowhere.example")
    kept = {await keep(service, bomb, begin=begin): bomb for bomb in WIDE_BOMBS.values()}
    stored = await service.stored()
    assert {message.id for message, _, _ in stored} == kept.keys()
    assert all(body.endswith(kept[message.id]) for message, _, body in stored)


# G8: bombs of compression.


@functools.cache
def zip_bomb() -> bytes:
    """A small archive that unpacks to a hundred megabytes."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("zeros", "w") as entry,
    ):
        for _ in range(100):
            entry.write(bytes(MEBIBYTE))
    return packed.getvalue()


@functools.cache
def gzip_bomb() -> bytes:
    """The same without a directory."""
    packed = zlib.compressobj(1, wbits=31)
    return b"".join(packed.compress(bytes(MEBIBYTE)) for _ in range(100)) + packed.flush()


def image_bomb() -> bytes:
    """A picture that says it is 4 billion pixels wide and high, in a few octets."""
    head = b"IHDR" + struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 6, 0, 0, 0)
    data = b"IDAT" + zlib.compress(bytes(4096))
    chunks = [
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in (head, data)
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("protocol", ["http", "smtp"])
async def test_g8_what_is_compressed_is_never_unpacked(service: WholeService, protocol: str) -> None:
    """G8: zip, gzip and image bombs arrive as they were; unpacking any of them would show in the memory."""
    bombs = {"a.zip": zip_bomb(), "a.gz": gzip_bomb(), "a.png": image_bomb()}
    tracemalloc.start()
    try:
        for name, bomb in bombs.items():
            if protocol == "http":
                answer = await service.post(attachments=[attached(bomb, filename=name)])
                assert answer.status_code == 202
            else:
                assert (await service.hand_in(with_file(name, bomb))).startswith("250 ")
        arrived = await service.settled()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert dict(file for each in arrived for file in files_of(each.taken.content)) == bombs
    assert peak < 30 * MEBIBYTE


# G9: files by address.


async def test_g9_nobody_fetches_a_file_by_its_address(service: WholeService) -> None:
    """G9: an attachment by URL is not offered: 400 over HTTP; over SMTP the address is text. Nobody is connected to."""
    async with smtp_peers.serving() as inside:
        url = f"http://127.0.0.1:{inside.port}/secret"
        for member in ("url", "path", "href", "content_url", "src", "file"):
            said = await service.refuse(attachments=[{"filename": "a.txt", member: url}])
            assert said.startswith("attachments[0]"), said
            await service.refuse(attachments=[{**attached(), member: url}])
        await service.refuse(attachments=[{"filename": "a.txt", "content": url}])
        await service.refuse(attachments=[url])
        external = (
            f'Content-Type: message/external-body; access-type=URL; URL="{url}"\r\n\r\n'
            "Content-Type: text/plain\r\nContent-ID: <a>\r\n\r\n"
        )
        assert (await service.hand_in(HEADER + external.encode())).startswith("250 ")
        assert (await service.post(text=None, html=f'<img src="{url}"><link href="{url}">')).status_code == 202
        assert len(await service.settled()) == 2
        assert inside.connections == 0
