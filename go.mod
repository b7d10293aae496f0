module airlock

go 1.26
