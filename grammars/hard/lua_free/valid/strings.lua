--[[ Strings of every kind,
     and comments of several lines ]]
local plain = "tab\t quote\" backslash\\ byte\065\x41 point\u{48}\u{10FFFF} \z
               joined"
local single = 'it\'s "two" calls'
local lines = [[
first ] second ]
]=] third]]
local nested = [==[
  a = b[c[1]] ]=] and [[ more ]] ]= ]
]==]
--[=[ a comment with ]] inside ]=]
local text = "Grüße, 世界"
print(plain, #lines, nested:gsub("%s+", " "), text)
