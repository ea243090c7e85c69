"""`pergola dashboard`: a live page over a cluster, and the answers of the products."""
