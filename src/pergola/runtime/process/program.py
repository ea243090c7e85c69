"""A program of its own, which is not a command of `pergola`."""

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

from pergola.runtime.failures import is_ours, sentence_of
from pergola.runtime.process import application


def run(serve: Callable[[], Coroutine[None, None, None]], name: str = "pergola") -> None:
    """Run a program until SIGTERM or SIGINT; then it has five seconds to end gracefully.

    An error that its user can mend, such as a cluster that is not configured, is one line on
    stderr, and the exit code is 1.

    Args:
        name: of the process, as traces show it.

    Raises:
        Exception: another error that ended the process, the first one if several did.
    """
    try:
        application.run(serve, name)
    except Exception as error:
        if not is_ours(error):
            raise
        raise SystemExit(f"{Path(sys.argv[0]).name}: {sentence_of(error)}") from None
