;;; local function fact(n) if n <= 1 then return 1 else return n * fact(n - 1) end end
goto ending
while true do
  repeat
    local x <const> = f "call" {table = 1} (1, 2) [3].name:method 'text'
    if x then break elseif not y then ::inner:: goto inner else do end end
  until x == nil
end
for i = #list, 1, -1 do list[i] = nil end
for k, v in next, t, nil do t[k], t[v] = v, k end
function a.b.c:d(e, ...) return ... end
local f = function(...) local n = select('#', ...); return n, (...) end
(f or g)(function() end)
ended, endless, inner_do, _or, notx, and2, local_, nilly, iff = end_ or then_, elsewhere
::ending::
