"""The resource manager's admission webhooks (spec 12), one module each.

Each module has a handler, the `registrations(installation)` for API servers, and `webhooks(config,
dependencies)`, which declares both.

- `catalog` lists them all.
- `installation` builds selectors, `subjects` guards handlers, `decoding` reads objects strictly.
- `facts` reads the handlers' inputs from a cluster, `documents` from manifests.
- `explanation` calls the handlers for `pergola explain`.
"""
