-- Accounts with a history, as a class of prototypes.
local Account = {}
Account.__index = Account

function Account.new(owner, balance)
  local self = setmetatable({}, Account)
  self.owner, self.balance = owner, balance or 0
  self.history = {n = 0; "opened"}
  return self
end

function Account:deposit(amount)
  if amount <= 0 then
    error("deposit of " .. tostring(amount) .. " refused", 2)
  elseif amount ~= amount then
    return nil, 'not a number'
  else
    self.balance = self.balance + amount
  end
  self.history[#self.history + 1] = {kind = "deposit", amount = amount, [1] = os.time()}
  return self
end

function Account:total(filter)
  local sum = 0
  for i, entry in ipairs(self.history) do
    if type(entry) == "table" and (not filter or filter(entry)) then
      sum = sum + (entry.amount or 0)
    end
  end
  return sum
end

local a <const> = Account.new("Ada", 0x1F)
a:deposit(10):deposit(2.5e1)
print(a.owner, a:total(function(e) return e.kind == "deposit" end))
