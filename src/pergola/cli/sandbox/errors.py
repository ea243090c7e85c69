"""Reports of progress and errors of the sandbox commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pergola.cli.text import say


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors that users can fix into one message and an exit code."""
    from pergola.sandbox import SandboxError

    try:
        yield
    except SandboxError as error:
        say(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        say("interrupted; nothing is left running", file=sys.stderr)
        raise SystemExit(130) from None


def report(line: str) -> None:
    """Print a progress line to standard error, since scripts read standard output."""
    say(line, file=sys.stderr, flush=True)
