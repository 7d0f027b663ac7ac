-- x:NONCE is there as long as it is remembered, xq:CALLER has those of a caller by their ends.
-- ARGV: 1 caller, 2 nonce, 3 keep, 4 how many a caller may have
local key, caller = P .. 'x:' .. ARGV[2], P .. 'xq:' .. ARGV[1]
if redis.call('EXISTS', key) == 1 then return 0 end
redis.call('ZREMRANGEBYSCORE', caller, '-inf', now)
if redis.call('ZCARD', caller) >= tonumber(ARGV[4]) then return -1 end
local keep = math.max(tonumber(ARGV[3]), 1)
redis.call('SET', key, 1, 'PX', keep)
redis.call('ZADD', caller, now + keep, ARGV[2])
-- It has to last as long as the longest in it.
if redis.call('PTTL', caller) < keep then redis.call('PEXPIRE', caller, keep) end
return 1
