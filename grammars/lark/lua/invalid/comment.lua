--[[ open
x = 1
