"""All explainers that Pergola ships; the first one with a sentence gives the verdict."""

from typing import Final

from pergola.why.certificate_requests import CERTIFICATE_REQUESTS
from pergola.why.conditions import CONDITIONS
from pergola.why.explainer import Explainer
from pergola.why.extensions import EXTENSIONS
from pergola.why.gardens import GARDENS
from pergola.why.health import HEALTH
from pergola.why.infra_clusters import INFRA_CLUSTERS
from pergola.why.managed_objects import MANAGED_OBJECTS
from pergola.why.managed_resources import MANAGED_RESOURCES
from pergola.why.network_policies import NETWORK_POLICIES
from pergola.why.ownership import OWNERSHIP
from pergola.why.secrets import SECRETS
from pergola.why.webhooks import WEBHOOKS
from pergola.why.workers import WORKERS

EXPLAINERS: Final[tuple[Explainer, ...]] = (
    GARDENS,
    MANAGED_RESOURCES,
    *WORKERS,
    EXTENSIONS,
    CONDITIONS,
    INFRA_CLUSTERS,
    CERTIFICATE_REQUESTS,
    NETWORK_POLICIES,
    *SECRETS,
    HEALTH,
    MANAGED_OBJECTS,
    WEBHOOKS,
    OWNERSHIP,
)
