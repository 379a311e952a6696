local function gcd(a, b)
  while b ~= 0 do a, b = b, a % b end
  return a
end

local primes = {}
for n = 2, 100 do
  for d = 2, n // 2 do
    if n % d == 0 then goto continue end
  end
  primes[#primes + 1] = n
  ::continue::
end

local i = 10
repeat
  i = i - 1
  local odd <close> = i & 1 == 1
  if odd then break end
until i <= 0 or primes[i] == nil

local bits = ~0 >> 3 << 2 | 0xFF ~ 0x0F & -1
local power = 2 ^ -3 ^ .5
do
  local t = {f = function(...) local a, b = ... return a, b, select("#", ...) end}
  print(t.f(gcd(12, 18), (gcd(5, 3))))
end
return bits, power, primes;
