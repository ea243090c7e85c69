"""Validation of extension objects: all findings at once, in the API server's wording (spec 12 §15).

`kinds` is the table of all kinds; `review` decides which checks apply when; `metadata` has the
rules for every kind; each of the other modules has the rules of one kind or a family of kinds, as
pure functions.
"""
