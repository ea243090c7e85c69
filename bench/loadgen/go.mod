module pergola/bench/loadgen

go 1.22
