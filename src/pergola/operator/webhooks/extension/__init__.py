"""Admission of the operator's Extensions (spec 21 §8.3, §9.2).

`review` and `defaulting` are the handlers; the other modules have the rules, as pure functions.
"""
