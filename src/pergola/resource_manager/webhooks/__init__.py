"""The resource manager's admission webhooks (spec 12), one module each.

Each module has a handler, the `registrations(installation)` by which an API server calls it, and
`webhooks(config, dependencies)`, which declares both.

- `catalog` lists them all.
- `installation` builds selectors, `subjects` guards handlers, `decoding` reads objects strictly.
- `lookups` reads what handlers need from a cluster, `documents` from manifests.
- `explanation` calls the handlers for `pergola explain`.
"""
