x = [[abc
