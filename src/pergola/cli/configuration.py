"""The resource manager's configuration file, for commands that do not start it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.resource_manager_config import ResourceManagerConfiguration


def read_settings(path: Path) -> "ResourceManagerConfiguration":
    """Read a configuration file, and print its warnings to standard error.

    Environment variables are ignored, and leader election is not checked: only the process needs
    them.

    Raises:
        StartError: The file cannot be read, is not valid YAML, or violates rules.
    """
    from pergola.resource_manager.configuration import read_configuration

    config, warnings = read_configuration(path, {}, offline=True)
    for warning in warnings:
        say(f"warning: {path}: {warning}", file=sys.stderr)
    return config
