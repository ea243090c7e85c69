"""The operator's webhooks (spec 21 §6 to §9).

`catalog` lists them; `garden` guards and defaults Gardens, `extension` the operator's
Extensions; `namespace` and `audit_policy` protect what a Garden needs.
"""
