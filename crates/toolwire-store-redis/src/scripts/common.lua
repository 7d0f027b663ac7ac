-- What all scripts begin with.
--
-- KEYS[1] is what every key begins with. A script finds the other keys by itself: all of them are in one slot.
-- Time is the server's, in milliseconds. Ids are hexadecimal, so that their order is that of their bytes.

local P = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function publish(topics)
  redis.call('PUBLISH', P .. 'wake', topics)
end
