"""The `pergola` command.

Each subcommand is a separate module, and imports its dependencies when it runs, so that `--help` is
fast. Only this room prints.
"""

import gc
import sys
from typing import Final

from cyclopts import App, CycloptsError, Parameter

from pergola import __version__
from pergola.cli.aws.app import app as aws
from pergola.cli.closed_pipe import end_quietly
from pergola.cli.completion.command import HIDDEN, completion, print_candidates
from pergola.cli.container import with_program
from pergola.cli.crds.app import app as crds
from pergola.cli.dashboard.command import dashboard
from pergola.cli.dashboard.server import dashboard_server
from pergola.cli.explain.command import explain
from pergola.cli.extension.app import app as extension
from pergola.cli.failures import is_expected, sentence
from pergola.cli.garbage import garbage
from pergola.cli.garden.app import app as garden
from pergola.cli.infra import app as infra
from pergola.cli.infra import infra_manager
from pergola.cli.manifests import app as manifests
from pergola.cli.network.app import app as network
from pergola.cli.network_policy.app import app as network_policy
from pergola.cli.new import new
from pergola.cli.operator import operator
from pergola.cli.resource_manager import resource_manager
from pergola.cli.sandbox import app as sandbox
from pergola.cli.support.command import support_bundle
from pergola.cli.text import say
from pergola.cli.tokens import tokens
from pergola.cli.unpack import unpack
from pergola.cli.up.command import up
from pergola.cli.version import version
from pergola.cli.webhooks.app import app as webhooks
from pergola.cli.why.command import why

USAGE: Final = 2
# Modules are not garbage: collecting while importing a command takes a tenth of the start-up.
_OBJECTS_OF_MODULES: Final = 200_000


def _shown(default: object) -> object:
    """Return the default of an option as help shows it; None hides an empty default."""
    if isinstance(default, tuple):
        default = ", ".join(map(str, default))
    return default or None


app: Final = App(
    name="pergola",
    help=(
        "A Kubernetes control plane in Python: keeps objects in a cluster exactly as "
        "ManagedResources describe them, and includes a real cluster to try it on."
    ),
    version=f"pergola {__version__}",
    help_format="markdown",
    default_parameter=Parameter(show_default=_shown),
)
app.command(up)
app.command(unpack)
app.command(new)
app.command(sandbox)
app.command(resource_manager)
app.command(operator)
app.command(dashboard)
app.command(dashboard_server)
app.command(crds)
app.command(garbage)
app.command(tokens)
app.command(aws)
app.command(garden)
app.command(network)
app.command(network_policy)
app.command(webhooks)
app.command(why)
app.command(explain)
app.command(extension)
app.command(manifests)
app.command(infra_manager)
app.command(infra)
app.command(version)
app.command(support_bundle)
app.command(completion)


def main() -> None:
    """Run the command line; report a user's mistake in one sentence, never as a traceback."""
    gc.set_threshold(_OBJECTS_OF_MODULES)
    try:
        if sys.argv[1:2] == [HIDDEN]:
            print_candidates(app, sys.argv[2:])
            return
        app(with_program(sys.argv[1:]), print_error=False, exit_on_error=False)
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
