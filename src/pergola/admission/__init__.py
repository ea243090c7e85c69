"""Admission webhooks: the review protocol, patches, the server, and the registration.

A webhook is a function from a `Request` to a `Verdict` and works on raw JSON.

Not for: decisions, which belong to the product that declares the webhook.
"""

from pergola.admission.draft import Draft
from pergola.admission.own_server import webhook_server
from pergola.admission.registration import Registration, Rule
from pergola.admission.review import (
    GroupVersionResource,
    Handler,
    Request,
    Verdict,
    allowed,
    denied,
    errored,
    invalid,
)
from pergola.admission.webhook import Webhook

__all__ = [
    "Draft",
    "GroupVersionResource",
    "Handler",
    "Registration",
    "Request",
    "Rule",
    "Verdict",
    "Webhook",
    "allowed",
    "denied",
    "errored",
    "invalid",
    "webhook_server",
]
