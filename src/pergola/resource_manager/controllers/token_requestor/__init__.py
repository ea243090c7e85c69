"""The TokenRequestor: ServiceAccount tokens of the target cluster in Secrets of the source cluster.

It serves pods that run in the source cluster but call the target's API server, for which projected
tokens are not available (spec 11 §1).

names      labels, annotations and data keys
kubeconfig the token and the CA inside a kubeconfig, and how to replace them
observe    the facts that are kept about a Secret and its token
inputs     the settings, and the request that a Secret makes, or every mistake in it
memory     what saves work: accepted and issued tokens, and the metrics of tokens
decide     whether a new token is due
desired    the ServiceAccount and the Secrets as they should be
controller caches and triggers, the steps of one run, and all writes
"""

from pergola.resource_manager.controllers.token_requestor.controller import token_requestor
from pergola.resource_manager.controllers.token_requestor.inputs import Settings

__all__ = ["Settings", "token_requestor"]
