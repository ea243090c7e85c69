"""`pergola aws`: inspect, check and plan infrastructure in AWS.

Each command is a module; AWS dependencies are imported when it runs.
"""

from typing import Final

from cyclopts import App

from pergola.cli.aws.check import check
from pergola.cli.aws.cloud_config import cloud_config
from pergola.cli.aws.iam_policy import iam_policy
from pergola.cli.aws.plan import plan
from pergola.cli.aws.show import show
from pergola.cli.aws.validate import validate

app: Final = App(
    name="aws",
    help="Inspect, check and plan the infrastructure of clusters in AWS.",
)
app.command(validate)
app.command(check)
app.command(iam_policy)
app.command(plan)
app.command(show)
app.command(cloud_config)
