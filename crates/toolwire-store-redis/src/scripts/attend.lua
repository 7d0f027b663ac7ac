if not get('fence') then return false end
local reader = redis.call('HINCRBY', H, 'reader', 1)
tell()
return reader
