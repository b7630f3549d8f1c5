"""The process that signs: answers in order, the same bytes as OpenSSL, and an end with its input."""

import io
import signal
import subprocess
import sys

import pytest

from postroad.mail.signing import signer_worker
from tests.services import rsa_keys


def frame(kind: int, slot: int, content: bytes) -> bytes:
    return signer_worker.REQUEST.pack(kind, slot, len(content)) + content


def serve(requests: bytes, *, at_once: int = 65_536) -> list[bytes]:
    """What the worker writes, piece by piece, when it can read so many octets at once."""
    written: list[bytes] = []
    source = io.BytesIO(requests)
    signer_worker.serve(lambda: source.read(at_once), written.append)
    return written


def answers(requests: bytes, *, at_once: int = 65_536) -> list[bytes]:
    return parts(b"".join(serve(requests, at_once=at_once)))


def parts(written: bytes) -> list[bytes]:
    found = []
    while written:
        (length,) = signer_worker.ANSWER.unpack_from(written)
        found.append(written[2 : 2 + length])
        assert len(found[-1]) == length
        written = written[2 + length :]
    return found


@pytest.mark.parametrize("bits", [1024, 2048])
def test_signatures_are_the_bytes_that_openssl_makes(bits: int) -> None:
    key = rsa_keys.make("a", bits=bits)
    sign = signer_worker.load(key.private_key)
    for number in range(5):
        signature = sign(rsa_keys.digest(str(number)))
        assert len(signature) == bits // 8
        assert rsa_keys.is_signed(key, str(number), signature)


def test_what_is_no_key_or_a_damaged_one_signs_nothing() -> None:
    whole = rsa_keys.make("a").private_key
    other_modulus = whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]
    for nonsense in (b"", b"not a key", bytes(1190), whole[:-20], other_modulus):
        assert signer_worker.load_or_null(nonsense)(rsa_keys.digest("a")) == b""


def test_whoever_only_speaks_to_workers_does_not_load_their_library() -> None:
    program = "import sys, postroad.mail.signing.signer_worker; sys.exit('awscrt' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_answers_come_in_the_order_of_the_digests_each_by_its_key() -> None:
    first, second = rsa_keys.make("a"), rsa_keys.make("b")
    found = answers(
        frame(signer_worker.KEY, 0, first.private_key)
        + frame(signer_worker.KEY, 7, second.private_key)
        + frame(signer_worker.DIGEST, 7, rsa_keys.digest("one"))
        + frame(signer_worker.DIGEST, 0, rsa_keys.digest("two"))
        + frame(signer_worker.KEY, 7, first.private_key)
        + frame(signer_worker.DIGEST, 7, rsa_keys.digest("three"))
    )
    assert len(found) == 3
    assert rsa_keys.is_signed(second, "one", found[0])
    assert rsa_keys.is_signed(first, "two", found[1])
    assert rsa_keys.is_signed(first, "three", found[2])


def test_requests_may_come_in_pieces_of_any_size() -> None:
    key = rsa_keys.make("a")
    digests = [frame(signer_worker.DIGEST, 3, rsa_keys.digest(str(number))) for number in range(10)]
    requests = frame(signer_worker.KEY, 3, key.private_key) + b"".join(digests)
    whole = answers(requests)
    assert len(whole) == 10
    assert all(rsa_keys.is_signed(key, str(number), found) for number, found in enumerate(whole))
    for at_once in (1, 7, 37, 1000):
        assert answers(requests, at_once=at_once) == whole


def test_answers_are_sent_a_few_at_a_time_and_none_is_kept_back() -> None:
    key = rsa_keys.make("a")
    digest = frame(signer_worker.DIGEST, 0, rsa_keys.digest("text"))
    written = serve(frame(signer_worker.KEY, 0, key.private_key) + digest * 18)
    assert [len(parts(piece)) for piece in written] == [8, 8, 2]


def test_a_key_of_no_use_is_answered_with_nothing_and_disturbs_no_other() -> None:
    key = rsa_keys.make("a")
    found = answers(
        frame(signer_worker.KEY, 0, b"not a key")
        + frame(signer_worker.KEY, 1, key.private_key)
        + frame(signer_worker.DIGEST, 0, rsa_keys.digest("one"))
        + frame(signer_worker.DIGEST, 1, rsa_keys.digest("two"))
    )
    assert found[0] == b""
    assert rsa_keys.is_signed(key, "two", found[1])


def test_a_request_that_is_cut_off_is_the_end() -> None:
    assert answers(frame(signer_worker.KEY, 0, rsa_keys.make("a").private_key) + b"\2\0") == []


def test_the_process_ignores_signals_for_its_group_and_ends_with_its_input() -> None:
    key = rsa_keys.make("a")
    with subprocess.Popen(
        [sys.executable, "-P", signer_worker.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(frame(signer_worker.KEY, 0, key.private_key))
        process.stdin.write(frame(signer_worker.DIGEST, 0, rsa_keys.digest("one")))
        process.stdin.flush()
        first = process.stdout.read(2 + 128)  # it has begun: from here on it is deaf to these
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(frame(signer_worker.DIGEST, 0, rsa_keys.digest("two")), timeout=60)
    assert process.returncode == 0
    signed = zip(("one", "two"), parts(first + rest), strict=True)
    assert all(rsa_keys.is_signed(key, text, found) for text, found in signed)
