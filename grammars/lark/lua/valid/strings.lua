-- quotes, escapes and long brackets; ein Kommentar mit Ä, 注释 und ]] darin
local quoted = "she said \"no\" \\ \065\x41\u{48}\z
    and went" .. 'it\'s'
local broken = 'over\
two lines'
local long = [[
first line is dropped ] ]=] " ' -- no comment
]]
local nested = [=[ one ]] two [[ three ]=] .. [==[ ]=] ]] ]==]
--[==[ a long comment ]] ]=]
over lines -- ]==] print"after it"
--[ no long comment
--[=no long comment either
---[[ nor this
io.write [[x]] [=[y]=] 'z' "ö"
return "", '', [[]], #"日本", "%d+" .. "\n"--at the end
