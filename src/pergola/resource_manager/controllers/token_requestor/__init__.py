"""The TokenRequestor: ServiceAccount tokens of the target cluster in Secrets of the source cluster.

It serves pods that run in the source cluster but call the target's API server, for which projected
tokens are not available (spec 11 §1).

unit       Settings, and the Unit that a process runs
names      labels, annotations and data keys
token      the claims of a JWT
kubeconfig the token and the CA inside a kubeconfig, and how to replace them
observe    the facts that are kept about a Secret
inputs     the request that a Secret makes, or every mistake in it
due        when a new token is due, as far as that can be decided locally
decide     evaluates these rules in their order, and reads what they need
review     whether the API server still accepts a token
accounts   the ServiceAccount and its tokens
place      what goes into the Secrets
pace       how often a token may be issued
metrics    expiry and failures by Secret
reconcile  the steps of one run
"""

from pergola.resource_manager.controllers.token_requestor.reconcile import TokenRequestor
from pergola.resource_manager.controllers.token_requestor.unit import Settings, token_requestor

__all__ = ["Settings", "TokenRequestor", "token_requestor"]
