"""Rotation of a Garden's credentials (spec 20 §17, spec 21 §10).

`phases` is the state machine in the status, `current` reads it, and `requested` says what a user
may request now. `tasks` adds the tasks to the flow that reconciles a Garden: `access_tokens` renews
the tokens of components, `seeds` has gardenlets renew theirs, `encryption` rolls new keys out and
rewrites what they encrypt. `ages` and `metrics` say how old credentials are.

Not for: generating credentials, which `pergola.secrets_manager` does.
"""
