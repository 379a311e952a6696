return 1, {f = function(a, b, ...) return a.b["c"](d):e() end}
