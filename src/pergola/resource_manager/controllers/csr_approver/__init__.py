"""The CertificateSigningRequest approver (spec 11 §3), one file per responsibility.

unit      its caches and triggers
approve   the steps of one run, and the write
requests  the undecided requests
request   the content of one of them, decoded
observe   Nodes and Machines, cached and live
rules     who gets which certificate
"""

from pergola.resource_manager.controllers.csr_approver.unit import Settings, csr_approver

__all__ = ["Settings", "csr_approver"]
