"""The dashboards of the garden; `panels` builds the panels that they consist of."""
