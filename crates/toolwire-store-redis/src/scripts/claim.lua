-- ARGV: 3 token, 4 lease, 5 how many, 6 how many bytes, 7 how long a task without a request is passed over, 8… due indexes
local token, lease, max, room = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- Of each index those that are due for the longest time; of all of these, again.
local found = {}
for i = 8, #ARGV do
  local ids = redis.call('ZRANGEBYSCORE', P .. 'due:' .. ARGV[i], '-inf', now, 'WITHSCORES', 'LIMIT', 0, max)
  for k = 1, #ids, 2 do found[#found + 1] = { id = ids[k], score = tonumber(ids[k + 1]), index = ARGV[i] } end
end
table.sort(found, function(a, b)
  if a.score ~= b.score then return a.score < b.score end
  return a.id < b.id
end)

local claimed = {}
for _, candidate in ipairs(found) do
  if #claimed >= max or room <= 0 then break end
  local t = load(candidate.id)
  local more = t and redis.call('HMGET', P .. 't:' .. t.id, 'rq', 'fm', 'ky')
  if t and not (more[1] and more[2] and more[3]) then
    redis.call('ZADD', P .. 'due:' .. candidate.index, now + tonumber(ARGV[7]), t.id)
  elseif t then
    t.f, t.tk, t.st, t.hd, t.n, t.nr, t.ai = t.f + 1, token, 'l', 0, 0, t.rv, ''
    t.le, t.ld, t.at = now + lease, lease, t.at + 1
    if t.wk == 0 then life_work(t) end
    due_after_lease(t)
    save(t, 'f', 'tk', 'st', 'hd', 'n', 'nr', 'ai', 'le', 'ld', 'at', 'fl', 'wk', 'un')
    local journal = redis.call('LRANGE', P .. 'j:' .. t.id, 0, -1)
    room = room - t.jb - #more[1]
    claimed[#claimed + 1] = { t.id, t.f, t.o, head(t), more[1], more[2], more[3], t.at, journal }
  else
    -- It has expired, and is swept by and by. Here it must not be in the way of others.
    redis.call('ZREM', P .. 'due:' .. candidate.index, candidate.id)
  end
end
return { now, claimed }
