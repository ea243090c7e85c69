"""Validation of extension objects: all findings at once, in the API server's words (spec 12 §15).

`kinds` is the table of all kinds; `review` decides what is checked when; `metadata` has the rules
for every kind; the other modules have the rules of one kind or a family of kinds, as pure
functions.
"""
