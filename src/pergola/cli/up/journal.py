"""The log of `pergola up`: in a file, so that the screen shows only the story."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pergola.runtime.logging import configure, get_logger
from pergola.sandbox import binaries

log = get_logger("up")


@contextmanager
def journal(name: str) -> Iterator[Path]:
    """Send all log lines to a file in the cache, which is kept only if the block fails.

    Yields:
        The file.
    """
    path = binaries.cache().with_name(f"{name}.log")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        configure("info", "text", stream)
        try:
            yield path
        except Exception as error:
            log.error("the demonstration failed", exc_info=error)
            raise
    path.unlink()
