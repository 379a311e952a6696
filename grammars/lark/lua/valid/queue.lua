--[[ A queue,
     with two ends ]]
local Queue <const> = {}
Queue.__index = Queue

function Queue.new(...)
  local self = setmetatable({first = 1, last = 0, items = {}; ["name"] = "q"}, Queue)
  for i, v in ipairs({...}) do self:push(v) end
  return self
end

function Queue:push(v)
  self.last = self.last + 1
  self.items[self.last] = v -- at the end
end

local function show(q, ...)
  local n, text = 0, [==[a ]] b]==]
  while n < #q.items and not (n >= 10) do
    n = n + 1
    if q.items[n] == nil then goto done
    elseif n % 2 == 0 then text = text .. "\n" .. q.items[n]
    else text = text .. 'x\'' end
  end
  ::done::
  repeat n = n - 1 until n <= 0 or n == 2^-1
  for i = 10, 1, -1 do if i ~= 3 then break end end
  print(text, ..., 0xA.8p3 // 1 << 2 & ~5, f"s", f{1})
  return text;
end
