goto = 1
x = y z
