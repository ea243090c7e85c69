"""Exceptions from the house rules of manifests, with reasons (see `pergola.bundle.lint`)."""

from typing import Final

EXCEPTIONS: Final = {
    "run-as-non-root DaemonSet kube-system/cilium": (
        "the agent configures the kernel of its node, which only root may do"
    ),
    "run-as-non-root DaemonSet kube-system/cilium-envoy": (
        "the proxy binds to addresses of pods and reads maps of the kernel"
    ),
    "seccomp-profile DaemonSet kube-system/cilium": (
        "the default profile of runtimes refuses the system calls that load eBPF programs"
    ),
}
"""Exceptions by rule and object; capabilities are limited instead."""

EXTERNAL: Final = ("Secret kube-system/hubble-relay-client-certs",)
"""Objects that are referenced but not rendered: the Job `hubble-generate-certs` creates them."""
