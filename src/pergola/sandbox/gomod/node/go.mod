module pergola/node

go 1.26.0
