"""The CertificateSigningRequest approver (spec 11 §3), one file for each thing that it does.

unit      what it watches, and what wakes it
approve   the steps of one run, and the write
requests  the requests that wait for a decision
request   what one of them asks for, decoded
observe   Nodes and Machines, as last seen and live
rules     who gets which certificate
"""

from pergola.resource_manager.controllers.csr_approver.unit import Settings, csr_approver

__all__ = ["Settings", "csr_approver"]
