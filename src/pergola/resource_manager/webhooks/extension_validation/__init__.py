"""Validates extension objects: all findings at once, in the words of the API server (spec 12 §15).

`kinds` is the table of all kinds; `review` says what is checked when; `metadata` holds for every
kind; the other modules have the rules of one kind or a family of kinds, as pure functions.
"""
