"""The `pergola` command.

Each subcommand is a module of its own, which is imported when it runs. Only this room prints.
"""

import gc
import sys
from typing import Final

from cyclopts import App, CycloptsError

from pergola.cli.closed_pipe import end_quietly
from pergola.cli.commands import application
from pergola.cli.completion.command import HIDDEN, print_candidates
from pergola.cli.container import with_program
from pergola.cli.failures import is_expected, sentence
from pergola.cli.text import say

USAGE: Final = 2
# Modules are not garbage: collecting while importing a command takes a tenth of the start-up.
_OBJECTS_OF_MODULES: Final = 200_000

app: Final[App] = application()


def main() -> None:
    """Run the command line; report a user's mistake in one sentence, never as a traceback."""
    gc.set_threshold(_OBJECTS_OF_MODULES)
    try:
        if sys.argv[1:2] == [HIDDEN]:
            print_candidates(app, sys.argv[2:])
            return
        arguments = with_program(sys.argv[1:])
        names_command = bool(arguments) and not arguments[0].startswith("-")
        chosen = app if names_command else application(is_overview=True)
        chosen(arguments, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        say(f"pergola: {error}", file=sys.stderr)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        end_quietly()
    except Exception as error:
        if not is_expected(error):
            raise
        say(f"pergola: {sentence(error)}", file=sys.stderr)
        sys.exit(1)
    finally:
        _flush()


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        end_quietly()
