"""Errors of charts.

ChartError                 root: every failure of this room
├── InvalidReference       a reference that names no chart
├── PullSecretInvalid      a pull secret that cannot be read
├── NotInRegistry          the registry does not have the chart
├── RegistryRefused        the registry refused the request, such as its credentials
├── RegistryUnreachable    the registry does not answer, or its certificate is not trusted
├── WrongDigest            content that is not what its digest promises
├── NotAChart              content that is not a Helm chart
├── TooLarge               content beyond the limits
└── HelmFailed             Helm cannot run, or refused the chart or its values
"""


class ChartError(Exception):
    """Base class of all failures of this room; the text is one sentence that names the chart."""


class InvalidReference(ChartError):
    """A reference that does not name a chart."""


class PullSecretInvalid(ChartError):
    """A pull secret cannot be read."""


class NotInRegistry(ChartError):
    """The registry does not have the chart."""


class RegistryRefused(ChartError):
    """The registry refused a request."""


class RegistryUnreachable(ChartError):
    """The registry does not answer."""


class WrongDigest(ChartError):
    """Content does not match its digest."""


class NotAChart(ChartError):
    """Content is not a Helm chart."""


class TooLarge(ChartError):
    """Content exceeds the limits."""


class HelmFailed(ChartError):
    """Helm cannot run, or refused a chart or its values."""
