-- What all scripts about logs begin with, after common.lua.
--
-- h:LOG  the head: node, fence, reader, pending and state of a stream; last, the highest number; first, which no event
--        that was let go of has reached; bytes
-- e:LOG  the events, a stream whose ids are their numbers
-- ls:KEY the logs of a session
-- posted the last number of a post, to whatever log: numbers are never used again, even when a log begins anew
--
-- A log and its events expire at the same moment.

-- ARGV: 1 log, 2 session or nothing, 3 events to keep, 4 bytes to keep, 5 how long it is kept when nothing comes any
-- more, 6 how long a stream is kept that is not written to
local log, session = ARGV[1], ARGV[2]
local H, E = P .. 'h:' .. log, P .. 'e:' .. log

local function number_of(id)
  return tonumber(string.match(id, '^%d+'))
end

local function get(name)
  return redis.call('HGET', H, name)
end

local function keep(time)
  redis.call('PEXPIRE', H, time)
  redis.call('PEXPIRE', E, time)
  if session ~= '' then
    local all = P .. 'ls:' .. session
    redis.call('SADD', all, log)
    if redis.call('PTTL', all) < tonumber(ARGV[6]) then redis.call('PEXPIRE', all, ARGV[6]) end
  end
end

local function text_of(number)
  return string.format('%.0f', number)
end

local function add(number, event)
  redis.call('XADD', E, text_of(number) .. '-0', 'e', event)
  redis.call('HSET', H, 'last', text_of(number))
  local bytes = redis.call('HINCRBY', H, 'bytes', #event)
  -- The newest is always kept: somebody may wait for it.
  while redis.call('XLEN', E) > 1 do
    if redis.call('XLEN', E) <= tonumber(ARGV[3]) and bytes <= tonumber(ARGV[4]) then break end
    local oldest = redis.call('XRANGE', E, '-', '+', 'COUNT', 1)[1]
    redis.call('XDEL', E, oldest[1])
    bytes = redis.call('HINCRBY', H, 'bytes', -#oldest[2][2])
    redis.call('HSET', H, 'first', text_of(number_of(oldest[1]) + 1))
  end
end

local function tell()
  publish('log:' .. log)
end
