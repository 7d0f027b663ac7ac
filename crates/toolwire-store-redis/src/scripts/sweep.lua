-- ARGV: 3 limit
local ids = redis.call('ZRANGEBYSCORE', P .. 'exp', '-inf', now, 'LIMIT', 0, tonumber(ARGV[3]))
for _, id in ipairs(ids) do
  local values = redis.call('HMGET', P .. 't:' .. id, 'o', 'q', 'st', 'dk', 'se')
  local t = { id = id, o = values[1] or '', q = values[2] or '', st = values[3] or 'e', dk = values[4] or '', se = values[5] or '' }
  purge(t)
  publish(topic(t))
end
return #ids
