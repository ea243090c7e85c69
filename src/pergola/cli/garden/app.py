"""`pergola garden`: check a Garden, compare it, and reach its virtual cluster.

Each command is a module; what needs the operator is imported when it runs.
"""

from typing import Final

from cyclopts import App

from pergola.cli.garden.check import check
from pergola.cli.garden.compare import compare
from pergola.cli.garden.kubeconfig import kubeconfig, token

app: Final = App(
    name="garden",
    help="Check a Garden, compare it with a landscape, and reach its virtual cluster.",
    help_format="plaintext",
)
app.command(check)
app.command(compare)
app.command(kubeconfig)
app.command(token)
