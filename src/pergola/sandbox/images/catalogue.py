"""The images that a sandbox provides: their names, programs and sources.

Manifests name images as in any other cluster. Images are looked up by repository, with the default
registry added to short names; tags are ignored, because there is one version of each program.
"""

from collections.abc import Iterable
from typing import Final

from pergola.bundle.image_reference import ImageReference
from pergola.sandbox.components import APISERVER, CONTROLLER_MANAGER, ETCD, KUBE_PROXY, SCHEDULER
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images.envoy import ENVOYS
from pergola.sandbox.images.garden import GARDEN
from pergola.sandbox.images.machines import MACHINE_CONTROLLERS
from pergola.sandbox.images.monitoring import OBSERVERS
from pergola.sandbox.images.offer import Offer, Program
from pergola.sandbox.images.pergola import REPLACEMENTS, PergolaImage
from pergola.sandbox.images.providers import PROVIDERS
from pergola.sandbox.images.stand_ins import STAND_INS
from pergola.sandbox.module import (
    COREDNS,
    DNS,
    KUBERNETES_NODE,
    LOCAL_PATH,
    LOCAL_PATH_HELPER,
    LOCAL_PATH_PROVISIONER,
    METRICS,
    METRICS_SERVER,
    OWN,
    PAUSE,
    SANDBOX,
)
from pergola.sandbox.on_demand import KUBE_RBAC_PROXY, TERMINAL_CONTROLLER_MANAGER

_ROOT: Final = "0:0"


CATALOGUE: Final[tuple[Offer, ...]] = (
    PergolaImage(),
    Program(
        PAUSE, "registry.k8s.io/pause", OWN, stand_in="sleeps and reaps zombies, like the original"
    ),
    Program(COREDNS, "registry.k8s.io/coredns/coredns", DNS),
    Program(LOCAL_PATH_PROVISIONER, "docker.io/rancher/local-path-provisioner", LOCAL_PATH),
    Program(
        LOCAL_PATH_HELPER,
        "pergola.local/local-path-helper",
        OWN,
        user=_ROOT,
        stand_in="creates and removes folders, without a shell",
    ),
    Program(METRICS_SERVER, "registry.k8s.io/metrics-server/metrics-server", METRICS),
    Program(ETCD, "registry.k8s.io/etcd", SANDBOX, requires="go.etcd.io/etcd/server/v3"),
    Program(APISERVER, "registry.k8s.io/kube-apiserver", SANDBOX),
    Program(CONTROLLER_MANAGER, "registry.k8s.io/kube-controller-manager", SANDBOX),
    Program(SCHEDULER, "registry.k8s.io/kube-scheduler", SANDBOX),
    Program(KUBE_PROXY, "registry.k8s.io/kube-proxy", KUBERNETES_NODE, user=_ROOT),
    *GARDEN,
    *OBSERVERS,
    *MACHINE_CONTROLLERS,
    *PROVIDERS,
    *REPLACEMENTS,
    *ENVOYS,
    *STAND_INS,
)

GARDEN_IMAGES: Final = (
    "pergola",
    "gardener-resource-manager",
    *(offer.name for offer in GARDEN if offer.name != TERMINAL_CONTROLLER_MANAGER),
    *(offer.name for offer in OBSERVERS if offer.name != KUBE_RBAC_PROXY),
    "istiod",
    "istio-proxy",
    "opentelemetry-operator",
)
"""The images of the example Garden that must be built, including those of this installation."""

SEED_IMAGES: Final = (
    "gardener-resource-manager",
    *("gardenlet", "etcd-druid", "etcd-backup-restore", "etcd-wrapper"),
    *("vpa-recommender", "vpa-updater", "vpa-admission-controller"),
    *("prometheus-operator", "prometheus-config-reloader", "prometheus", "kube-state-metrics"),
    *("kube-apiserver", "kube-controller-manager"),
    *("istiod", "istio-proxy"),
)
"""The images of a Seed and its Shoots that are imported before it is created."""


def named(names: Iterable[str]) -> list[Offer]:
    """Return the offers with these names.

    Raises:
        SandboxError: a name is not in the catalogue.
    """
    offers = {offer.name: offer for offer in CATALOGUE}
    requested = list(names)
    for name in requested:
        if name not in offers:
            raise SandboxError(
                f'there is no image "{name}"; `pergola sandbox images` lists all images'
            )
    return [offers[name] for name in requested]


def resolve(reference: str) -> Offer | None:
    """Return the offer for an image reference, ignoring its tag and digest; None if unknown."""
    repository = repository_of(reference)
    for offer in CATALOGUE:
        if repository in (offer.repository, *offer.aliases):
            return offer
    return None


def repository_of(reference: str) -> str:
    """Return the repository of an image reference, with the default registry added."""
    repository = ImageReference.parse(reference).repository
    first = repository.partition("/")[0]
    if "/" not in repository:
        return f"docker.io/library/{repository}"
    if "." not in first and ":" not in first and first != "localhost":
        return f"docker.io/{repository}"
    return repository


def qualified(reference: str) -> str:
    """Return an image reference in full, as containerd looks it up: with registry and tag."""
    _, tag, digest = ImageReference.parse(reference)
    name = f"{repository_of(reference)}:{tag}" if tag else repository_of(reference)
    if digest:
        return f"{name}@{digest}"
    return name if tag else f"{name}:latest"
