"""The `pergola` command.

Each subcommand is a module of its own and imported only when it runs, so that `--help` is fast.
Nothing outside this room prints.
"""

import sys
from typing import Final

from cyclopts import App

from pergola import __version__

app: Final = App(
    name="pergola",
    help=(
        "A Kubernetes control plane in Python: keeps objects in a cluster exactly as "
        "ManagedResources describe them, and brings a real cluster to try it on."
    ),
    version=f"pergola {__version__}",
    help_format="plaintext",
)
app.command("pergola.cli.up:up", name="up")
app.command("pergola.cli.sandbox:app", name="sandbox")
app.command("pergola.cli.resource_manager:resource_manager", name="resource-manager")
app.command("pergola.cli.crds:app", name="crds")
app.command("pergola.cli.version:version", name="version")
app.register_install_completion_command(name="completion")


def main() -> None:
    """Runs the command line; a mistake of the user ends in one sentence, never a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if not _is_expected(error):
            raise
        print(f"pergola: {error}", file=sys.stderr)
        sys.exit(1)


def _is_expected(error: Exception) -> bool:
    """Whether the text of an error is meant for the user: all our rooms' root errors are."""
    return isinstance(error, OSError) or any(
        kind.__module__.startswith("pergola.") for kind in type(error).__mro__
    )
