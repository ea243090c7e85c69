"""Files sealed with a passphrase: scrypt derives the keys, AES-256-GCM encrypts.

A file consists of its magic line, then salt, nonce, passphrase check and length, then the
ciphertext, which authenticates all of them. The check distinguishes a wrong passphrase from a
damaged file; it makes guessing a passphrase no cheaper.
"""

import hashlib
import hmac
import os
import struct
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from pergola.operator.transfer.export import TransferError

_MAGIC: Final = b"pergola-garden-export "
_VERSION: Final = b"1\n"
_HEADER: Final = struct.Struct(">16s12s32sQ")
_START: Final = len(_MAGIC) + len(_VERSION)
_BODY: Final = _START + _HEADER.size
_KEY_BYTES: Final = 32
# 128 MiB and about half a second for each guess.
_COST: Final = {"n": 2**17, "r": 8, "p": 1}


def is_sealed(content: bytes) -> bool:
    """Return whether content starts like a sealed file of any version."""
    return content.startswith(_MAGIC)


def seal(content: bytes, passphrase: str) -> bytes:
    """Encrypt content with a passphrase; equal content is sealed differently each time."""
    salt, nonce = os.urandom(16), os.urandom(12)
    key, check_key = _keys(passphrase, salt)
    size = _BODY + len(content) + 16
    header = _MAGIC + _VERSION + _HEADER.pack(salt, nonce, _check(check_key, salt, nonce), size)
    return header + AESGCM(key).encrypt(nonce, content, header)


def unseal(sealed: bytes, passphrase: str) -> bytes:
    """Return the content of a sealed file.

    Raises:
        TransferError: The passphrase is wrong, or the file is not an export, too new or damaged.
    """
    if not is_sealed(sealed):
        raise TransferError("it is not an export of a Garden")
    if sealed[len(_MAGIC) : _START] != _VERSION:
        version = sealed[len(_MAGIC) :].partition(b"\n")[0][:8].decode("ascii", "replace")
        raise TransferError(
            f'it is damaged, or a newer pergola wrote it (format "{version}", this one reads "1")'
        )
    if len(sealed) < _BODY:
        raise TransferError("it is truncated: export again, or use another copy")
    salt, nonce, check, size = _HEADER.unpack(sealed[_START:_BODY])
    key, check_key = _keys(passphrase, salt)
    if not hmac.compare_digest(check, _check(check_key, salt, nonce)):
        raise TransferError("the passphrase is not the one it was sealed with")
    if len(sealed) < size:
        raise TransferError(
            f"it is truncated: it has {len(sealed)} of {size} bytes; use another copy"
        )
    try:
        return AESGCM(key).decrypt(nonce, sealed[_BODY:], sealed[:_BODY])
    except InvalidTag:
        raise TransferError("it is damaged: use another copy") from None


def _keys(passphrase: str, salt: bytes) -> tuple[bytes, bytes]:
    """Return the key for encryption, and the one that checks the passphrase."""
    derived = Scrypt(salt=salt, length=2 * _KEY_BYTES, **_COST).derive(passphrase.encode())
    return derived[:_KEY_BYTES], derived[_KEY_BYTES:]


def _check(key: bytes, salt: bytes, nonce: bytes) -> bytes:
    return hmac.digest(key, salt + nonce, hashlib.sha256)
