"""A real control plane on this machine, for `pergola up`, for tests and for benchmarks.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler as processes on loopback, and kwok
for nodes and pods. Not a mock, and not for production: all data is lost when it stops. Linux only.

    sandbox = await start("demo")
    ...  # kubectl --kubeconfig {sandbox.kubeconfig}
    await sandbox.stop()
"""

from pergola.sandbox.cluster import THIS_PROCESS, Sandbox, find, start, stop
from pergola.sandbox.components import ALL, API_ONLY, WITH_NODE, Components
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.progress import Progress, silent

__all__ = [
    "ALL",
    "API_ONLY",
    "THIS_PROCESS",
    "WITH_NODE",
    "Components",
    "Progress",
    "Sandbox",
    "SandboxError",
    "find",
    "silent",
    "start",
    "stop",
]
