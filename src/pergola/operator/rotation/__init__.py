"""Rotation of a Garden's credentials (spec 20 §17, spec 21 §10).

`phases` is the state machine in the status, `current` reads it, and `requested` determines what a
user may request now. `tasks` adds tasks to the flow that reconciles a Garden: `access_tokens`
renews the tokens of components, `seeds` makes gardenlets renew theirs, `encryption` rolls out new
keys and rewrites encrypted objects. `ages` and `metrics` report the ages of credentials.

Not for: generating credentials, which `pergola.secrets_manager` does.
"""
