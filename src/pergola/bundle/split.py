"""Spreads objects over several Secrets where one cannot hold them.

The API server refuses Secrets of more than 1 MiB of data. That is found out here, before anything
is written, and is nobody's problem unless a single object is that large.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from pergola.bundle.errors import ObjectTooLarge
from pergola.bundle.registry import QUALITY, Document, compress

SECRET_LIMIT: Final = 1_048_576
"""What the API server accepts, in bytes."""
PART_LIMIT: Final = 1_000_000
"""What we put into one Secret, which leaves room for what others may add."""


class _Part(NamedTuple):
    documents: Sequence[Document]
    data: bytes


def split(
    documents: Sequence[Document], *, limit: int = PART_LIMIT, quality: int = QUALITY
) -> list[bytes]:
    """Compressed streams of at most `limit` bytes; their documents keep their order.

    Nothing is split that fits. The same documents are always split at the same places.

    Raises:
        ObjectTooLarge: an object alone exceeds the limit; names the largest.
    """
    if not documents:
        return []
    parts = _halve(documents, limit, quality)
    too_large = [part for part in parts if len(part.data) > limit]
    if too_large:
        raise _too_large(max(too_large, key=lambda part: len(part.data)), limit)
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
    """Where to cut so that both sides are as equal as they can be, and neither is empty."""
    total = sum(sizes)
    sides = list(accumulate(sizes))[:-1]
    return 1 + min(range(len(sides)), key=lambda index: abs(total - 2 * sides[index]))


def _too_large(part: _Part, limit: int) -> ObjectTooLarge:
    document = part.documents[0]
    return ObjectTooLarge(
        f"{document.title} has {len(document.text)} bytes, compressed {len(part.data)}, but a"
        f" Secret holds at most {limit}; make this object smaller"
    )
