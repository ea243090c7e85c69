"""`pergola garden`: the commands for a Garden, and access to its virtual cluster.

Each command is a module; operator dependencies are imported when it runs.
"""

from typing import Final

from cyclopts import App

from pergola.cli.garden.certificates import certificates
from pergola.cli.garden.check import check
from pergola.cli.garden.compare import compare
from pergola.cli.garden.kubeconfig import kubeconfig, token
from pergola.cli.garden.plan import plan
from pergola.cli.garden.rotate import rotate
from pergola.cli.garden.status import status
from pergola.cli.garden.transfer import export, import_
from pergola.cli.garden.wait import wait
from pergola.cli.garden.why import why

app: Final = App(
    name="garden",
    help="Check, plan, compare, follow, rotate and move a Garden, and reach its virtual cluster.",
)
app.command(check)
app.command(plan)
app.command(compare)
app.command(status)
app.command(wait)
app.command(why)
app.command(rotate)
app.command(certificates)
app.command(export)
app.command(import_, name="import")
app.command(kubeconfig)
app.command(token)
