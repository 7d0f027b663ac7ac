-- ARGV: 1 idle, 2… key, seen
for i = 2, #ARGV, 2 do
  local key = P .. 's:' .. ARGV[i]
  local there = redis.call('HMGET', key, 'seen', 'gone')
  if there[1] and not there[2] then
    redis.call('PEXPIRE', key, ARGV[1])
    if tonumber(ARGV[i + 1]) > tonumber(there[1]) then redis.call('HSET', key, 'seen', ARGV[i + 1]) end
  end
end
return 1
