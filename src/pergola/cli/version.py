"""`pergola version`."""

import platform

from pergola import __version__
from pergola.cli.text import say


def version() -> None:
    """Print the versions of Pergola, of the API it serves and of Python."""
    say(f"pergola    {__version__}")
    say("api        resources.gardener.cloud/v1alpha1")
    say(f"python     {platform.python_version()} ({platform.machine()})")
