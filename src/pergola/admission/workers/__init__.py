"""Webhooks in several processes that share one port (SO_REUSEPORT) and one certificate.

The parent process serves as well, and owns certificates, registration, probes and metrics. `pool`
starts and supervises the workers, `worker` is their side, and `messages` defines the protocol
between them.
"""

from pergola.admission.workers.pool import WorkerError, WorkerPool

__all__ = ["WorkerError", "WorkerPool"]
