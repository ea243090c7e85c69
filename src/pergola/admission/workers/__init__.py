"""Webhooks on several processes, which share one port (SO_REUSEPORT) and one certificate.

The process that starts the others serves as well, and owns certificates, registration, probes and
metrics. `pool` starts and supervises the others, `worker` is their side, and `messages` has what
they say to each other.
"""

from pergola.admission.workers.pool import WorkerError, WorkerPool

__all__ = ["WorkerError", "WorkerPool"]
