"""The TokenRequestor: ServiceAccount tokens of the target cluster in Secrets of the source cluster.

It is for pods that run beside the source cluster's API server and talk to the target's, to whom no
projected token can reach (spec 11 §1).

unit       what it is made of: Settings, and the Unit
names      its labels, annotations and data keys
token      what a JWT says of itself
kubeconfig the token and the CA inside a kubeconfig, and how to exchange them
observe    what is kept of a Secret
inputs     what a Secret asks for, or every mistake in it
due        when a new token is due, and how little of that an API server has to be asked
decide     asks these rules in their order, and reads what they need
review     whether the API server still believes a token
accounts   the ServiceAccount, and the tokens that it is issued
place      what is written into the Secrets
pace       how often a token may be issued
metrics    what can be seen from outside
reconcile  the steps of one run
"""

from pergola.resource_manager.controllers.token_requestor.reconcile import TokenRequestor
from pergola.resource_manager.controllers.token_requestor.unit import Settings, token_requestor

__all__ = ["Settings", "TokenRequestor", "token_requestor"]
