"""Serving admission webhooks: the review protocol, patches, the server, and the registration.

A webhook is a function from a `Request` to a `Verdict`; it works on raw JSON. What a webhook
decides belongs to the product that has it, not here.
"""
