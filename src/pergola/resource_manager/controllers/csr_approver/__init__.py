"""The CertificateSigningRequest approver (spec 11 §3).

request     the content of a request, decoded
rules       who gets which certificate
judge       reads Nodes and Machines, and applies the rules
controller  when a request is decided, and the write
"""

from pergola.resource_manager.controllers.csr_approver.controller import Settings, csr_approver

__all__ = ["Settings", "csr_approver"]
