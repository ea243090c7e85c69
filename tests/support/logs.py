"""Log lines of a module, as tests see them."""

import logging
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
import structlog

Line = MutableMapping[str, Any]


@contextmanager
def captured_logs(module: ModuleType) -> Iterator[list[Line]]:
    """Yield the lines that a module logs while the block lasts, at every level.

    Its logger is replaced by one of its own, independent of what the process configured: an
    earlier test may have run a command that logs errors only.
    """
    capture = structlog.testing.LogCapture()
    every_level = structlog.make_filtering_bound_logger(logging.NOTSET)
    logger = structlog.wrap_logger(None, [capture], every_level, cache_logger_on_first_use=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "log", logger)
        yield capture.entries
