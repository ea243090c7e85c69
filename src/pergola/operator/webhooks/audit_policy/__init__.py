"""Audit policies of a Garden: its API servers do not start with one that is wrong (spec 21 §9.3).

`review` is the webhook about Gardens and ConfigMaps, `rules` says what a policy may say.
"""
