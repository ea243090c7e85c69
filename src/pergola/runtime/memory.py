"""Returning free memory to the operating system: regularly, and during and after a flood.

glibc allocates large blocks by mmap, whose memory returns to the system at once, but raises its
limit to the largest block that was freed: after the first large body, bodies and their decoded
values share the heap with small objects, which keep it from shrinking. A fixed limit prevents that.
"""

import ctypes
import gc
from functools import cache
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK: Final = 64 * 1024


def allocate_large_blocks_apart() -> None:
    """Have the C library return each large block as soon as it is free; only glibc can."""
    library = _library()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)


def release_free_memory() -> None:
    """Delete garbage, and ask the C library to return memory that it keeps; only glibc can."""
    gc.collect()
    library = _library()
    if library is not None:
        library.malloc_trim(0)


@cache
def _library() -> ctypes.CDLL | None:
    """Return the C library if it is glibc."""
    try:
        library = ctypes.CDLL(None)
        _ = library.malloc_trim, library.mallopt
    except (OSError, AttributeError):
        return None
    return library
