"""Log lines of a module, as tests see them."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
import structlog

Line = MutableMapping[str, Any]


@contextmanager
def captured_logs(module: ModuleType) -> Iterator[list[Line]]:
    """Yield the lines that a module logs while the block lasts.

    Its logger is replaced: one that was used since an earlier test configured logs keeps their
    configuration, and cannot be captured.
    """
    with pytest.MonkeyPatch.context() as patch, structlog.testing.capture_logs() as lines:
        patch.setattr(module, "log", structlog.get_logger())
        yield lines
