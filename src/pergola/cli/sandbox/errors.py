"""How commands of the sandbox report progress and failure."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what the user can mend into one sentence and an exit code."""
    from pergola.sandbox import SandboxError

    try:
        yield
    except SandboxError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("interrupted; nothing is left running", file=sys.stderr)
        raise SystemExit(130) from None


def say(line: str) -> None:
    """Show a line of progress; not on standard output, which may be read by a script."""
    print(line, file=sys.stderr, flush=True)
