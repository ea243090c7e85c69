"""`pergola infra` and `pergola infra-manager`: externally managed infrastructure of Cluster API."""

from pergola.cli.infra.commands import app
from pergola.cli.infra.manager import infra_manager

__all__ = ["app", "infra_manager"]
