-- ARGV: 3 owner, 4 limit, 5 moment and 6 id to go on after, both empty for the beginning
local key, limit = P .. 'o:' .. ARGV[3], tonumber(ARGV[4])
local moment, last = tonumber(ARGV[5]), ARGV[6]
local heads, offset = {}, 0
while #heads < limit do
  local page = redis.call('ZREVRANGEBYSCORE', key, moment or '+inf', '-inf', 'WITHSCORES', 'LIMIT', offset, limit)
  if #page == 0 then break end
  for i = 1, #page, 2 do
    -- Those of the same moment come in the order of their ids.
    local is_after = not moment or tonumber(page[i + 1]) < moment or page[i] < last
    local t = is_after and #heads < limit and load(page[i])
    if t then heads[#heads + 1] = head(t) end
  end
  offset = offset + limit
end
return heads
