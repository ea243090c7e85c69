"""Isolation of cache callbacks: a failure does not reach the cache or other callbacks.

A cache serves many controllers. A bug in one `keep` function or subscriber must not end the watch
that the others depend on: the failure is logged and counted in
`pergola_cache_callbacks_failed_total`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pergola.api.objects import GroupVersionKind, Key
from pergola.runtime.logging import get_logger

log = get_logger("cache")


class _Failures:
    count = 0


def callbacks_failed() -> int:
    """Return the number of failed calls, over all caches of the process."""
    return _Failures.count


@contextmanager
def isolated(callback: str, kind: GroupVersionKind, key: Key) -> Iterator[None]:
    """Log and count an exception raised in the block instead of propagating it.

    Args:
        callback: the role of the callback: `keep` or `subscriber`.
    """
    try:
        yield
    except Exception as error:
        _Failures.count += 1
        log.error(
            "cache callback failed",
            callback=callback,
            kind=str(kind),
            object=str(key),
            exc_info=error,
        )
