-- Answers with tasks, and with the place to go on after if there may be more: no other client is served meanwhile.
-- ARGV: 3 owner, 4 limit, 5 how many to look at, 6 moment and 7 id to go on after, both empty for the beginning
local key, limit, left = P .. 'o:' .. ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local moment, last = tonumber(ARGV[6]), ARGV[7]
local heads, offset, place = {}, 0, {}
while #heads < limit and left > 0 do
  local page = redis.call('ZREVRANGEBYSCORE', key, moment or '+inf', '-inf', 'WITHSCORES', 'LIMIT', offset, limit)
  if #page == 0 then
    place = {}
    break
  end
  local kept = 0
  for i = 1, #page, 2 do
    local id, score = page[i], tonumber(page[i + 1])
    -- Those of the same moment come in the order of their ids.
    local is_after = not moment or score < moment or id < last
    if not is_after then
      kept = kept + 1
    elseif #heads < limit and left > 0 then
      left, place = left - 1, { score, id }
      local t = load(id)
      if t then
        kept, heads[#heads + 1] = kept + 1, head(t)
      else
        -- It has expired. It is swept by and by, and not looked at again until then.
        redis.call('ZREM', key, id)
      end
    end
  end
  offset = offset + kept
end
return { heads, place }
