"""Returning free memory to the operating system after a flood of requests."""

import ctypes
from functools import cache


def release_free_memory() -> None:
    """Ask the C library to return memory that it keeps for reuse; only glibc can."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> "ctypes._NamedFuncPointer | None":
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
