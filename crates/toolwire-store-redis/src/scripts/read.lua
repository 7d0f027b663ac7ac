-- ARGV: 7 after, 8 limit, 9 how many bytes at once, but for the last event
local limit, room = tonumber(ARGV[8]), tonumber(ARGV[9])
local head = redis.call('HMGET', H, 'fence', 'node', 'pending', 'state', 'last', 'reader', 'first')
local events, after = {}, '(' .. ARGV[7] .. '-0'
while #events < limit * 2 and room > 0 do
  local page = redis.call('XRANGE', E, after, '+', 'COUNT', math.min(limit - #events / 2, 64))
  if #page == 0 then break end
  for _, event in ipairs(page) do
    if room <= 0 then break end
    events[#events + 1], events[#events + 2] = number_of(event[1]), event[2][2]
    room = room - #event[2][2]
    after = '(' .. event[1]
  end
end
return { head, events }
