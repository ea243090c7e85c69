"""The resource manager's admission webhooks (spec 12), one module each.

Each module has `PATH`, what is served there, and `registrations(installation)`, which says for
which requests an API server shall ask it.
"""
