"""The end of a command whose reader has ended, such as `head`."""

import os
import sys
from typing import Final, NoReturn

_CLOSED_PIPE: Final = 141  # what shells report of a program that SIGPIPE ended


def end_quietly() -> NoReturn:
    """End the command because its reader has, as `head` does: no message, and nothing to flush."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    raise SystemExit(_CLOSED_PIPE)
