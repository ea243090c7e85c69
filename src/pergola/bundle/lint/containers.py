"""Rules about containers: resources, privileges, images, probes."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import map_at
from pergola.bundle.image_reference import ImageReference
from pergola.bundle.lint.manifests import Container, Finding, Manifests, Workload

# A process with one of these can gain privileges regardless of the manifest.
_OWNS_THE_KERNEL: Final = frozenset({"SYS_ADMIN", "CAP_SYS_ADMIN", "ALL"})
_PROBES: Final = ("livenessProbe", "readinessProbe")


def memory_request(manifests: Manifests) -> Iterator[Finding]:
    """Check that containers request memory, which the scheduler needs for planning."""
    for workload, container in _containers(manifests):
        if not map_at(container.spec, "resources", "requests").get("memory"):
            yield Finding(
                workload.object,
                f"{container.path}.resources.requests.memory",
                f"container {container.name} must request memory",
            )


def cpu_limit(manifests: Manifests) -> Iterator[Finding]:
    """Check that no container has a CPU limit, which throttles it even on an idle node."""
    for workload, container in _containers(manifests):
        if map_at(container.spec, "resources", "limits").get("cpu") is not None:
            yield Finding(
                workload.object,
                f"{container.path}.resources.limits.cpu",
                f"container {container.name} must not be throttled by a CPU limit; remove it",
            )


def privilege_escalation(manifests: Manifests) -> Iterator[Finding]:
    """Check that no process can gain more privileges than its container."""
    for workload, container in _containers(manifests):
        if container.is_privileged or _owns_the_kernel(container):
            continue
        if container.security.get("allowPrivilegeEscalation") is not False:
            yield Finding(
                workload.object,
                f"{container.path}.securityContext.allowPrivilegeEscalation",
                f"container {container.name} must set this to false",
            )


def run_as_non_root(manifests: Manifests) -> Iterator[Finding]:
    """Check that containers do not run as root; those that need to require an exception."""
    for workload, container in _containers(manifests):
        if not _is_non_root(workload, container):
            yield Finding(
                workload.object,
                f"{container.path}.securityContext.runAsNonRoot",
                f"container {container.name} must set this to true, itself or in its pod;"
                " one that needs root needs an exception",
            )


def seccomp_profile(manifests: Manifests) -> Iterator[Finding]:
    """Check that all containers but privileged ones run under a seccomp profile."""
    for workload, container in _containers(manifests):
        if container.is_privileged:
            continue
        profile = map_at(container.spec, "securityContext", "seccompProfile")
        profile = profile or map_at(workload.pod, "securityContext", "seccompProfile")
        if profile.get("type") not in ("RuntimeDefault", "Localhost"):
            yield Finding(
                workload.object,
                f"{container.path}.securityContext.seccompProfile.type",
                f"container {container.name} must use RuntimeDefault or its own profile; the pod "
                "may set it for all containers",
            )


def pinned_image(manifests: Manifests) -> Iterator[Finding]:
    """Check that images have a digest or a tag other than latest."""
    for workload, container in _containers(manifests):
        image = container.spec.get("image")
        if not isinstance(image, str) or not ImageReference.parse(image).is_pinned:
            yield Finding(
                workload.object,
                f"{container.path}.image",
                f'image "{image or ""}" of container {container.name} needs a tag other than'
                " latest, or a digest",
            )


def probes(manifests: Manifests) -> Iterator[Finding]:
    """Check that containers have a probe, unless they are meant to terminate."""
    for workload, container in _containers(manifests):
        if not container.ends and not any(container.spec.get(probe) for probe in _PROBES):
            yield Finding(
                workload.object,
                container.path,
                f"container {container.name} is long-running, and needs a livenessProbe or a"
                " readinessProbe",
            )


def _containers(manifests: Manifests) -> Iterator[tuple[Workload, Container]]:
    for workload in manifests.workloads:
        for container in workload.containers():
            yield workload, container


def _owns_the_kernel(container: Container) -> bool:
    added = map_at(container.security, "capabilities").get("add")
    return isinstance(added, list) and not _OWNS_THE_KERNEL.isdisjoint(map(str, added))


def _is_non_root(workload: Workload, container: Container) -> bool:
    """Return whether a container cannot run as root; its security context overrides its pod's."""
    security = map_at(workload.pod, "securityContext") | container.security
    user = security.get("runAsUser")
    return user != 0 and (security.get("runAsNonRoot") is True or isinstance(user, int))
