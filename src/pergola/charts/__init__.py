"""Helm charts: pulled from an OCI registry or embedded, checked, and rendered by Helm.

Not for: processing the rendered objects, which is in `bundle`.

    puller = Puller(Blobs(directory))
    chart = await puller.pull(ChartReference.of(repository), Access(credentials=credentials))
    objects = await Helm().render(chart, Release("greeter", "demo", values, kube_version))
"""

from pergola.charts.archive import Chart, read_chart
from pergola.charts.blobs import Blobs
from pergola.charts.embedded import embedded_chart
from pergola.charts.errors import (
    ChartError,
    HelmFailed,
    InvalidReference,
    NotAChart,
    NotInRegistry,
    PullSecretInvalid,
    RegistryRefused,
    RegistryUnreachable,
    TooLarge,
    WrongDigest,
)
from pergola.charts.helm import Helm, Release
from pergola.charts.limits import Limits
from pergola.charts.pull import Puller
from pergola.charts.pull_secret import Credentials, credentials_in
from pergola.charts.reference import ChartReference
from pergola.charts.registry import Access
from pergola.charts.values import merge_values

__all__ = [
    "Access",
    "Blobs",
    "Chart",
    "ChartError",
    "ChartReference",
    "Credentials",
    "Helm",
    "HelmFailed",
    "InvalidReference",
    "Limits",
    "NotAChart",
    "NotInRegistry",
    "PullSecretInvalid",
    "Puller",
    "RegistryRefused",
    "RegistryUnreachable",
    "Release",
    "TooLarge",
    "WrongDigest",
    "credentials_in",
    "embedded_chart",
    "merge_values",
    "read_chart",
]
