"""`pergola dashboard`: a live page over a cluster, and the products' answers."""
