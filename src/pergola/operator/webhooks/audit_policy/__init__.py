"""Admission of a Garden's audit policies: API servers do not start with an invalid one.

`review` is the webhook for Gardens and ConfigMaps, `rules` validates a policy (spec 21 §9.3).
"""
