"""The operator's webhooks (spec 21 §6 to §9).

`catalog` lists them; `garden` validates and defaults Gardens, `extension` the operator's
Extensions; `namespace` and `audit_policy` protect objects that a Garden requires.
"""
