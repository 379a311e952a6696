x = fn -> 1 end; x.()
