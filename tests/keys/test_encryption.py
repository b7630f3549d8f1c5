"""A sealed secret opens for its owner, with the installation's key, unchanged; and in no other way."""

import pytest

from postroad.keys import encryption

KEY = bytes(range(32))
NONCE = b"a nonce of 12"[:12]
SECRET = b"\0a private key\xff"


def test_a_secret_comes_back_as_it_was() -> None:
    sealed = encryption.encrypt(KEY, SECRET, owner="dkim acc_1 dom_1", nonce=NONCE)
    assert SECRET[1:-1] not in sealed
    assert encryption.decrypt(KEY, sealed, owner="dkim acc_1 dom_1") == SECRET


def test_two_nonces_give_two_texts() -> None:
    sealed = {encryption.encrypt(KEY, SECRET, owner="a", nonce=bytes([number]) * 12) for number in range(10)}
    assert len({one[13:] for one in sealed}) == 10


def test_another_key_and_another_owner_do_not_open_it() -> None:
    sealed = encryption.encrypt(KEY, SECRET, owner="dkim acc_1 dom_1", nonce=NONCE)
    with pytest.raises(encryption.DecryptionError, match=r"security\.installation_key"):
        encryption.decrypt(KEY[::-1], sealed, owner="dkim acc_1 dom_1")
    with pytest.raises(encryption.DecryptionError, match="dom_2"):
        encryption.decrypt(KEY, sealed, owner="dkim acc_1 dom_2")


def test_every_changed_octet_and_every_cut_is_noticed() -> None:
    sealed = encryption.encrypt(KEY, SECRET, owner="a", nonce=NONCE)
    changed = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]
    cut = [sealed[:length] for length in range(len(sealed))]
    for broken in (*changed, *cut, sealed + b"\0"):
        with pytest.raises(encryption.DecryptionError):
            encryption.decrypt(KEY, broken, owner="a")
