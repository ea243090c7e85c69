"""Splitting of objects into several Secrets if they do not fit into one.

The API server rejects Secrets with more than 1 MiB of data. That is detected here, before anything
is written, and is an error only if a single object has that size.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from pergola.bundle.errors import ObjectTooLarge
from pergola.bundle.registry import QUALITY, Document, compress

SECRET_LIMIT: Final = 1_048_576
"""The API server's limit for a Secret, in bytes."""
PART_LIMIT: Final = 750_000
"""The size above which to split: 1 MB as base64, which proxies allow by default."""


class _Part(NamedTuple):
    documents: Sequence[Document]
    data: bytes


def split(
    documents: Sequence[Document],
    *,
    part_limit: int = PART_LIMIT,
    secret_limit: int = SECRET_LIMIT,
    quality: int = QUALITY,
) -> list[bytes]:
    """Return compressed streams of at most `part_limit` bytes, keeping the order of the documents.

    Content that fits is not split, and the same documents are always split at the same places. An
    object that exceeds `part_limit` gets a part of its own.

    Raises:
        ObjectTooLarge: a single object exceeds `secret_limit`; the text names the largest.
    """
    if not documents:
        return []
    parts = _halve(documents, part_limit, quality)
    largest = max(parts, key=lambda part: len(part.data))
    if len(largest.data) > secret_limit:
        raise _too_large(largest, secret_limit)
    return [part.data for part in parts]


def _halve(documents: Sequence[Document], limit: int, quality: int) -> list[_Part]:
    data = compress(documents, quality=quality)
    if len(data) <= limit or len(documents) == 1:
        return [_Part(documents, data)]
    middle = _middle([len(document.text) for document in documents])
    return [
        *_halve(documents[:middle], limit, quality),
        *_halve(documents[middle:], limit, quality),
    ]


def _middle(sizes: Sequence[int]) -> int:
    """Return where to cut so that both sides are as equal as possible, and neither is empty."""
    total = sum(sizes)
    sides = list(accumulate(sizes))[:-1]
    return 1 + min(range(len(sides)), key=lambda index: abs(total - 2 * sides[index]))


def _too_large(part: _Part, limit: int) -> ObjectTooLarge:
    document = part.documents[0]
    return ObjectTooLarge(
        f"{document.title} has {len(document.text)} bytes, compressed {len(part.data)}, but a "
        f"Secret can contain at most {limit}; make this object smaller"
    )
