"""The resource manager's admission webhooks (spec 12), one module each.

Each module has `PATH`, what is served there, and `registrations(installation)`, which says for
which requests an API server shall ask it.

- `catalog` is the table of all: from a configuration to what is served and registered.
- `installation` makes selectors; `subjects` guards handlers; `decoding` reads objects strictly.
- `lookups` answers from a cluster what handlers have to know, `documents` from manifests.
- `explanation` asks the handlers why; `pergola explain` prints it.
"""
