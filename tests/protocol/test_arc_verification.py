"""ARC chains that others have sealed hold, and none that was cut, mixed or opened again."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.signatures import arc_verification, dkim_verification
from tests import arc_seals, dkim_signatures, dkim_verifiers

NOW = 1_800_000_000
# Sealed by dkimpy, three times.
FOREIGN = b"""\
ARC-Seal: i=3; cv=pass; a=rsa-sha256; d=mx.example; s=arc; t=1700000003;
 b=Y0vvBodBr6RYpluqAkD3k4U3KQsOoQl8WvMaI/MCnit23liHKilt0CKkT5CRNLt7CM5Dk
 65dOuss8KPUGWY1FOA9aawcT/wnxaZ/mQJcGqeDIvoWTEUVJXuW7m1iHEgDIq2dx1eroVqv
 Y8z4EGMplxRGM5SGj6BQ8QAJIbSWUG0=
ARC-Message-Signature: i=3; a=rsa-sha256; c=relaxed/relaxed;
 d=mx.example; s=arc; t=1700000003; h=from : to : subject : date :
 message-id; bh=qhoJ+psZWWwGBFo47vMkZ+rqMzSRnateL1Q1CLX3aAM=;
 b=W24ndpkzaQ/KhLewqCpxYZQZYIx4mT5RxRj6oY/ZZG9tx24ed4n3SbwiPfUYP5SPfdWS1
 1HltgxiaanFCLYzxrDVt2NCWly3M8wgZ4ZgEHglu3u/iHHMcHcNvy74MdDITK9Nhj5OKCs+
 l8IR0pjr8pFuCE/W08d4OFOBEKt6kq8=
ARC-Authentication-Results: i=3; mx.example;
 arc=pass;
 spf=pass smtp.mailfrom=author.example
ARC-Seal: i=2; cv=pass; a=rsa-sha256; d=forward.example; s=arc;
 t=1700000002;
 b=uM9TlNiVimxdKajPvvzVvVpq05zyHUOrfcQtatusmt69rkdApBCaYTiSTDeX13ahtbg/2
 wWVZsfyS/b62itC7CCGBFKb8uyRMP5zovDxtFCYbBrwFKOJ5yEpIY8J6NzEZmp11Wi//kp2
 +sRosQQP6HNX7mCuPlFz1P0BFn2OuzI=
ARC-Message-Signature: i=2; a=rsa-sha256; c=relaxed/relaxed;
 d=forward.example; s=arc; t=1700000002; h=from : to : subject : date :
 message-id; bh=qhoJ+psZWWwGBFo47vMkZ+rqMzSRnateL1Q1CLX3aAM=;
 b=sGofOlDyq4W26VREIG09lRKjm+Uo0ksidRcuyHkGtoviiOcuUT/AhQGDmURhofGWEXHwC
 UPPha/BLJQUDlChzyXr7rqobkkvyG6YyXZKNEmPFm9HLtqrLAYkfkrYm5YgruiT3/kbUV3P
 wFTUd2PDJ78M+/2uePVr8r7LlNpHTlg=
ARC-Authentication-Results: i=2; forward.example;
 arc=pass;
 spf=pass smtp.mailfrom=author.example
ARC-Seal: i=1; cv=none; a=rsa-sha256; d=list.example; s=arc;
 t=1700000001;
 b=khbs6sf4tTFokLdsVgKW1H+fsy6I/DlD5sxXfy9aSDWldJkFhlWyPphGMOLURNNmyq9kQ
 BE6iX5qv5AsZB2ge5yMBQ53/ncrSUjRGpn6PcZhEquvoaV90j0PGnzjGGdf7T7Ay4xEfdVd
 m+/G/wPL+m1sniSgCKJjf7e4tzUltHg=
ARC-Message-Signature: i=1; a=rsa-sha256; c=relaxed/relaxed;
 d=list.example; s=arc; t=1700000001; h=from : to : subject : date :
 message-id; bh=qhoJ+psZWWwGBFo47vMkZ+rqMzSRnateL1Q1CLX3aAM=;
 b=QU8HkzNYx8JW0+NIOfaaOgnr3aQ5DSesphP2FT9ttU8KQmD9BkWbzV6QXPgjv8NVTZDcG
 4zO3CLjqXasIUpy/jmGmrTUcbW84X/fr+FCp0EEnNU1ofAOy36dvFK9SiOhHjf5+qjZKO2x
 K6mZRYfRETLUPffAtogCO/nfLj9Md+Q=
ARC-Authentication-Results: i=1; list.example;
 arc=none;
 spf=pass smtp.mailfrom=author.example
From: Ada <ada@author.example>
To: list@list.example
Subject:  Dinner
\tat eight
Date: Fri, 15 Jan 2027 08:00:00 +0000
Message-ID: <1@author.example>

Hello \t there

""".replace(b"\n", b"\r\n")
FOREIGN_RECORD = (
    "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDQ4m0KqWQ/EHo7k2bhFUADKOTRP/lXSlrocIBPriLFmS"
    "lLFwf9aPacZQA8T5yDY5GCC7vTDD2+BW/iC10F93Ifc9kH0oF8Gr97iYbYVXzEgNAZ4Uow+2dggML9nGsL9GtDrgY5QcgDXG92mB"
    "qHXjjVgCwyg/NRj6HJJYgDcak6hwIDAQAB"
)
CONTENT = b"From: ada@provider.example\r\nTo: b@c.example\r\nSubject: x\r\n\r\nHello \t you\r\n\r\n"
NAME = "sel._domainkey.provider.example"
THREE = arc_seals.chain(CONTENT, sets=3)


def proven(content: bytes, record: str = dkim_signatures.RECORD) -> list[bool]:
    """Whether the newest message signature and the seals, the newest first, are by the key."""
    chain = arc_verification.read(dkim_verification.Message(content), now=NOW)
    return (
        [] if chain is None else [dkim_verification.is_proven(each, record) for each in (chain.message, *chain.seals)]
    )


def test_a_chain_that_another_program_has_sealed_holds() -> None:
    assert proven(FOREIGN, FOREIGN_RECORD) == [True] * 4
    chain = arc_verification.read(dkim_verification.Message(FOREIGN), now=NOW)
    assert chain is not None
    assert [seal.domain for seal in chain.seals] == ["mx.example", "forward.example", "list.example"]
    assert chain.results == "mx.example; arc=pass; spf=pass smtp.mailfrom=author.example"


@pytest.mark.parametrize("sets", [1, 2, 50])
def test_another_program_agrees_about_chains(sets: int) -> None:
    content = arc_seals.chain(CONTENT, sets=sets)
    assert proven(content) == [True] * (sets + 1)
    assert dkim_verifiers.dkimpy_accepts_chain(content, {NAME: dkim_signatures.RECORD})


def test_without_a_set_there_is_no_chain() -> None:
    assert proven(CONTENT) == []


@pytest.mark.parametrize(
    "old, new",
    [
        (b"Hello", b"Other"),
        (b"Subject: x", b"Subject: y"),
        (b"From: ada", b"From: eve"),
        (b"dkim=pass", b"dkim=fail"),
        (b"cv=none", b"cv=pass"),
        (b"ARC-Authentication-Results: i=2", b"ARC-Authentication-Results: i=4"),
        (b"ARC-Authentication-Results: i=2", b"ARC-Authentication-Results: i=1"),
        (b"ARC-Authentication-Results: i=2", b"ARC-Authentication-Results: 2"),
        (b"ARC-Authentication-Results: i=2", b"X-Other: i=2"),
        (b"ARC-Seal: i=3", b"ARC-Seal: h=from; i=3"),
        (b"ARC-Seal: i=3", b"ARC-Seal: t=now; i=3"),
        (b"ARC-Seal: i=3;", b"ARC-Seal: i=3; i=3;"),
        (b"ARC-Seal: i=2; a=rsa-sha256", b"ARC-Seal: i=2; a=rsa-sha1"),
        (b"cv=pass; d=provider.example", b"cv=pass; d=provider..example"),
        (b"h=from:to", b"h=arc-seal:from:to"),
        (b"h=from:to", b"l=1; h=from:to"),
        (b"h=from:to", b"x=1; h=from:to"),
        (b"ARC-Seal: i=1", b"ARC-Seal: i=0"),
        (b"ARC-Seal: i=1", b"ARC-Seal: i=99"),
    ],
)
def test_a_chain_that_was_changed_does_not_hold(old: bytes, new: bytes) -> None:
    changed = THREE.replace(old, new)
    assert changed != THREE
    with contextlib.suppress(arc_verification.ArcError):
        assert not all(proven(changed))


def test_the_body_may_have_changed_before_the_newest_seal() -> None:
    first = arc_seals.seal(CONTENT)
    content = arc_seals.seal(first.replace(b"Hello", b"[List] Hello"), number=2)
    assert proven(content) == [True] * 3


@pytest.mark.parametrize("status", ["fail", "none", "PASSED", ""])
def test_a_seal_that_says_the_chain_was_broken_ends_it(status: str) -> None:
    content = arc_seals.seal(arc_seals.seal(CONTENT), number=2, tags={"cv": status})
    with pytest.raises(arc_verification.ArcError, match="set 2"):
        proven(content)


def test_there_are_no_more_than_fifty_sets() -> None:
    with pytest.raises(arc_verification.ArcError, match="more than 50"):
        proven(arc_seals.chain(CONTENT, sets=51))
    with pytest.raises(arc_verification.ArcError, match="more than 50"):
        proven(b"ARC-Seal: i=1\r\n" * 900 + CONTENT)


@given(st.binary(max_size=200), st.integers(0, 2_000))
def test_no_input_makes_it_fail(junk: bytes, place: int) -> None:
    for content in (junk, THREE[:place] + junk + THREE[place:], b"ARC-Seal: " + junk + b"\r\n" + CONTENT):
        with contextlib.suppress(arc_verification.ArcError):
            proven(content)
