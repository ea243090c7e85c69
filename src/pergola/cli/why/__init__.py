"""`pergola why`: why an object is as it is."""
