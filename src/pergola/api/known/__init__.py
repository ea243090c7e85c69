"""Facts about versions of Kubernetes, taken from its sources.

Each module has one table and functions that query it, or the rules that all admissions share. Not
for: policy based on these facts.
"""
