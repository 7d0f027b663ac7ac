-- A session is s:KEY: rec its record, rev, seen, and gone once it was removed. It expires by itself.
-- ARGV: 1 key, 2 the rev that is expected, 3 idle, 4 record, 5 seen
local key, expect = P .. 's:' .. ARGV[1], ARGV[2]
local there = redis.call('HMGET', key, 'rev', 'gone')
local rev = 1
if expect == '' then
  if there[1] then return false end
else
  if there[1] ~= expect or there[2] then return false end
  rev = tonumber(expect) + 1
end
redis.call('HSET', key, 'rec', ARGV[4], 'rev', rev, 'seen', ARGV[5])
redis.call('PEXPIRE', key, ARGV[3])
publish('session:' .. ARGV[1])
return rev
