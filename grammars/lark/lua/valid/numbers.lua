local a, b = 3, 0xff
local c <close>, d <const> = .5, 5.
t = {1e10, 1.5E-3, 0x.8, 0XA., 0x1p4, 0xA.8P-3, 3 ..2, 1 .. .2; [1] = -1, x = - -1, [f(x)] = y,}
n = 2^3^2 * -x^2 // 7 % 5 - #t .. "a" .. 1 < 2 == not a ~= b
m = a & b | c ~ d << 1 >> 2 & ~e
k = a or b and c > d or (e <= f) and not not g
