-- ARGV: 3… ids
local revs = {}
for i = 3, #ARGV do
  local values = redis.call('HMGET', P .. 't:' .. ARGV[i], 'rv', 'un')
  local is_there = values[1] and tonumber(values[2]) > now
  revs[#revs + 1] = is_there and tonumber(values[1])
end
return revs
