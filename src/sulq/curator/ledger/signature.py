"""Signatures: whoever has a ledger's public key can tell what that ledger signed, with nothing else at hand."""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

LENGTH: Final = 32  # of either half of a key


class Signer:
    """Signs with a ledger's own key (Ed25519, RFC 8032); `public` is what checks it."""

    __slots__ = ("_key", "public")

    def __init__(self, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """The signature of a message, in hexadecimal."""
        return self._key.sign(message).hex()


def signed(message: bytes, signature: str, public: str) -> bool:
    """Whether a signature is of this message and by this key; of what is no signature or key it is not."""
    if signature != signature.lower() or public != public.lower():  # one spelling each
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
