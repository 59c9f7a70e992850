module example.com/awkward

go 1.19
