-- ARGV: 7 event
local number = redis.call('INCR', P .. 'posted')
add(number, ARGV[7])
keep(ARGV[5])
tell()
return number
