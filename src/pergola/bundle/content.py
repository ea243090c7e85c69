"""The documents in the data of Secrets written by others (spec 10 §4.3).

A compressed value of a hundred bytes can hold gigabytes, and a few megabytes of text a million
broken documents. Readers of such data spend one `Budget` on all of it, and stop when that is used
up. Reading takes CPU time, so an event loop delegates it to a thread (`is_cheap`).
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import brotli

from pergola.bundle.errors import BundleError
from pergola.kube.yaml import Document, ValueLimit, parse_documents

COMPRESSED: Final = ".br"
_UNSUPPORTED: Final = (".gz", ".zst", ".xz", ".bz2", ".lz4", ".zip")
_STEP_BYTES: Final = 1024 * 1024
_CHEAP_BYTES: Final = 16 * 1024

MOST_BYTES: Final = 32 * 1024 * 1024
MOST_VALUES: Final = 2_000_000
MOST_DOCUMENTS: Final = 10_000
MOST_ERRORS: Final = 100


class DecompressionError(BundleError):
    """A compressed value cannot be read; the text gives the reason."""


class BudgetExceeded(BundleError):
    """The data is larger than any sensible content; the part that was read is incomplete."""


@dataclass(slots=True)
class Budget:
    """The remaining budget for reading, shared by all values that are read with it.

    Attributes:
        bytes: the decompressed content.
        documents: with content or without.
        errors: broken documents.
        values: scalars and containers.
    """

    bytes: int = MOST_BYTES
    documents: int = MOST_DOCUMENTS
    errors: int = MOST_ERRORS
    values: ValueLimit = field(default_factory=lambda: ValueLimit(MOST_VALUES))

    def spend_bytes(self, count: int) -> None:
        """Count content before it is parsed.

        Raises:
            BudgetExceeded: there is more than allowed.
        """
        self.bytes -= count
        if self.bytes < 0:
            raise BudgetExceeded(f"the Secrets contain more than {MOST_BYTES} bytes of content")

    def spend(self, document: Document) -> None:
        """Count a document.

        Raises:
            BudgetExceeded: there are more than allowed, of documents, errors or values.
        """
        if self.values.is_exceeded:
            raise BudgetExceeded(f"the Secrets contain more than {MOST_VALUES} values")
        self.documents -= 1
        if self.documents < 0:
            raise BudgetExceeded(f"the Secrets contain more than {MOST_DOCUMENTS} documents")
        self.errors -= document.error is not None
        if self.errors < 0:
            raise BudgetExceeded(f"the Secrets contain more than {MOST_ERRORS} broken documents")


def decode_data(data: Mapping[str, object]) -> dict[str, bytes]:
    """Decode the `data` of a Secret from base64; values that are not base64 become empty."""
    return {key: _decoded(value) for key, value in data.items()}


def is_cheap(*secrets: Mapping[str, bytes]) -> bool:
    """Return whether an event loop can read the data itself: little text, not compressed."""
    size = sum(len(value) for data in secrets for value in data.values())
    return size <= _CHEAP_BYTES and not any(
        key.endswith(COMPRESSED) for data in secrets for key in data
    )


def read_documents(key: str, value: bytes, budget: Budget) -> Iterator[Document]:
    """Yield the documents in one value; the suffix of its key names the compression.

    Raises:
        DecompressionError: the value cannot be decompressed.
        BudgetExceeded: the budget is used up; read nothing more with it.
    """
    if key.endswith(_UNSUPPORTED):
        suffix = key[key.rindex(".") :]
        raise DecompressionError(f"compression {suffix} is not supported; use {COMPRESSED}")
    if key.endswith(COMPRESSED):
        content = decompress(value, budget)
    else:
        budget.spend_bytes(len(value))
        content = value
    for document in parse_documents(content, budget.values):
        budget.spend(document)
        yield document


def decompress(value: bytes, budget: Budget) -> bytes:
    """Return the content of a Brotli stream.

    Raises:
        DecompressionError: it is corrupt or truncated.
        BudgetExceeded: it exceeds the budget.
    """
    if not value:
        return b""
    stream = brotli.Decompressor()
    parts: list[bytes] = []
    try:
        part = stream.process(value, output_buffer_limit=_STEP_BYTES)
        while True:
            budget.spend_bytes(len(part))
            parts.append(part)
            if stream.is_finished() or (not part and stream.can_accept_more_data()):
                break
            part = stream.process(b"", output_buffer_limit=_STEP_BYTES)
    except brotli.error:
        raise DecompressionError("not a Brotli stream, or a corrupt one") from None
    if not stream.is_finished():
        raise DecompressionError("the Brotli stream is truncated")
    return b"".join(parts)


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(value if isinstance(value, str) else "")
    except (binascii.Error, ValueError):
        return b""
