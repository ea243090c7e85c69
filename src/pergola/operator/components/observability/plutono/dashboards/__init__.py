"""The dashboards of the garden, one module each; `panels` has the parts that they consist of."""
