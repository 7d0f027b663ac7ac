-- ARGV: 1 session
local all = P .. 'ls:' .. ARGV[1]
for _, log in ipairs(redis.call('SMEMBERS', all)) do
  redis.call('DEL', P .. 'h:' .. log, P .. 'e:' .. log)
  publish('log:' .. log)
end
redis.call('DEL', all)
return 1
