-- What is left keeps the session from coming back for as long as it would have been there.
-- ARGV: 1 key
local key = P .. 's:' .. ARGV[1]
local there = redis.call('HMGET', key, 'rev', 'gone')
if not there[1] or there[2] then return 0 end
redis.call('HSET', key, 'gone', 1)
redis.call('HDEL', key, 'rec')
publish('session:' .. ARGV[1])
return 1
