"""`pergola up`: a control plane on this machine with Pergola in it."""
