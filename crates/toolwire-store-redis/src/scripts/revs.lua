-- ARGV: 3… ids
local revs = {}
for i = 3, #ARGV do
  local values = redis.call('HMGET', P .. 't:' .. ARGV[i], 'rv', 'un')
  local is_there = (tonumber(values[2]) or 0) > now
  revs[#revs + 1] = is_there and tonumber(values[1] or '') or false
end
return revs
