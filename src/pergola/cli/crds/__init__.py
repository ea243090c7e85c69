"""`pergola crds`: CustomResourceDefinitions, printed or installed."""
