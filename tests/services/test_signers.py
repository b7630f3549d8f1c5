"""Signers are chosen by the settings, and threads sign as they should."""

import asyncio

import pytest

from postroad.services import signer_processes, signer_worker, signers
from tests.services import rsa_keys


async def test_threads_sign_for_many_keys_at_once() -> None:
    working = signers.ThreadSigners(2)
    keys = [rsa_keys.make(name) for name in "abc"]
    wanted = [(key, f"{number} {key.selector}") for number in range(10) for key in keys]
    found = await asyncio.gather(*(working.sign(key, rsa_keys.digest(text)) for key, text in wanted))
    await working.close()
    for (key, text), signature in zip(wanted, found, strict=True):
        assert rsa_keys.is_signed(key, text, signature)


async def test_keys_beyond_the_bound_are_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signers, "MOST_KEYS", 2)
    working = signers.ThreadSigners(1)
    keys = [rsa_keys.make(name) for name in "abc"]
    for key in keys * 2:
        assert rsa_keys.is_signed(key, "text", await working.sign(key, rsa_keys.digest("text")))
    assert len(working._loaded) == 2
    await working.close()


async def test_a_key_of_no_use_is_refused_with_its_name() -> None:
    working = signers.ThreadSigners(1)
    with pytest.raises(signer_processes.SigningFailed, match="broken"):
        await working.sign(rsa_keys.UNUSABLE, rsa_keys.digest("a"))
    await working.close()


async def test_the_settings_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {True: signer_processes.ProcessSigners, False: signers.ThreadSigners}
    for is_fast in (True, False):
        monkeypatch.setattr(signer_worker, "is_fast", lambda is_fast=is_fast: is_fast)
        assert isinstance(signers.choose("auto", workers=1), kinds[is_fast])
        assert isinstance(signers.choose("threads", workers=1), signers.ThreadSigners)
        assert isinstance(signers.choose("processes", workers=1), signer_processes.ProcessSigners)
