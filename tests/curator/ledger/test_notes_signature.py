"""Signatures: by one key, of one message."""

from __future__ import annotations

import pytest

from sulq.curator.ledger.notes import KEY_BYTES, Signer, signed


def test_a_signature_is_of_one_message_by_one_key() -> None:
    """Another message, key or signature does not fit."""
    signer = Signer(b"s" * KEY_BYTES)
    mark = signer.sign(b"message")
    assert signed(b"message", mark, signer.public)
    assert not signed(b"Message", mark, signer.public)
    assert not signed(b"message", mark, Signer(b"t" * KEY_BYTES).public)
    assert not signed(b"message", signer.sign(b"other"), signer.public)
    assert not signed(b"message", mark.upper(), signer.public)
    assert not signed(b"message", mark, signer.public.upper())


def test_it_is_ed25519() -> None:
    """The first test vector of RFC 8032, section 7.1: anyone's library can check a receipt."""
    signer = Signer(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    assert signer.public == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert signer.sign(b"") == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )


@pytest.mark.parametrize("text", ["", "zz", "ab", "é", "00" * 64, "ab" * 31])
def test_what_is_no_signature_or_key_fits_nothing(text: str) -> None:
    """It is refused like a wrong one, without an error of its own."""
    signer = Signer(b"s" * KEY_BYTES)
    assert not signed(b"m", text, signer.public)
    assert not signed(b"m", signer.sign(b"m"), text)
