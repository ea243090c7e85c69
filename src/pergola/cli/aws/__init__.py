"""`pergola aws`: checks, plans and shows networks in AWS."""
