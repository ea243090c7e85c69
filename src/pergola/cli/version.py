"""`pergola version`."""

import platform

from pergola import __version__


def version() -> None:
    """Print the versions of Pergola, of the API it serves and of Python."""
    print(f"pergola    {__version__}")
    print("api        resources.gardener.cloud/v1alpha1")
    print(f"python     {platform.python_version()} ({platform.machine()})")
