-- What all scripts about tasks begin with, after common.lua.
--
-- t:ID   the task. st is its state: r(eady), l(eased), p(arked), t(imed), e(nded). w:KEY is where in the journal the
--        answer to a question is: a key that has one is never opened again.
-- j:ID   its journal, a list
-- due:…  what can be claimed when, by tool, revision, format and key
-- o:…    tasks of an owner by their creation
-- q:…    how many tasks of a quota have not ended
-- exp    when tasks expire
--
-- None of these expires by itself: a journal that is gone before its task would run every step again.

local FIELDS = {
  'o', 'q', 'st', 's', 'hd', 'c', 'u', 'kp', 'tl', 'fl', 'wk', 'un', 'rv', 'f', 'tk', 'le', 'ld', 'at', 'n', 'nr',
  'ai', 'jb', 'jc', 'dk', 'op', 'ie', 'nt', 'pl', 'se', 'tool',
}
local NUMBERS = {
  'c', 'u', 'kp', 'tl', 'fl', 'wk', 'un', 'rv', 'f', 'le', 'ld', 'at', 'n', 'nr', 'jb', 'jc', 'hd',
}

-- The task, or nil if there is none or it has expired.
local function load(id)
  local values = redis.call('HMGET', P .. 't:' .. id, unpack(FIELDS))
  if not values[1] then return nil end
  local t = { id = id }
  for i, name in ipairs(FIELDS) do t[name] = values[i] or '' end
  -- One that is damaged must not end a script that others wait for.
  for _, name in ipairs(NUMBERS) do t[name] = tonumber(t[name]) or 0 end
  if t.un <= now then return nil end
  return t
end

-- Of owner, or nil: unknown and foreign look the same.
local function load_of(owner, id)
  local t = load(id)
  if t and t.o == owner then return t end
  return nil
end

-- Writes down what may have changed; names are the fields.
local function save(t, ...)
  local values = {}
  for _, name in ipairs({ ... }) do
    values[#values + 1] = name
    local value = t[name]
    if type(value) == 'number' then value = string.format('%.0f', value) end
    values[#values + 1] = value
  end
  redis.call('HSET', P .. 't:' .. t.id, unpack(values))
end

-- The rule of toolwire_store::Life.
local function shown(t)
  if t.wk == 1 then return math.max(t.fl, math.min(now + t.kp, t.c + t.tl)) end
  return t.fl
end

local function expires(t, at)
  if at ~= t.un then
    t.un = at
    redis.call('ZADD', P .. 'exp', at, t.id)
  end
end

local function waits(t, at)
  t.fl = math.max(shown(t), at)
  t.wk = 0
end

local function life_work(t)
  t.fl = shown(t)
  t.wk = 1
  expires(t, math.max(t.fl, t.c + t.tl))
end

local function life_sleep(t, due)
  waits(t, math.max(due, now) + t.kp)
  expires(t, math.max(t.fl, t.c + t.tl))
end

local function life_park(t)
  waits(t, now + t.kp)
  expires(t, t.fl)
end

local function life_end(t, keep)
  waits(t, now + math.max(t.kp, keep))
  expires(t, t.fl)
end

-- A run that is held, or a task that is parked, waits as long as a question is open.
local function waits_or_works(t, open)
  if open > 0 then life_park(t) else life_work(t) end
end

-- Lets go of what nobody will need again. What has failed may be tried once more, and keeps it.
local function strip(t)
  redis.call('DEL', P .. 'j:' .. t.id)
  redis.call('HDEL', P .. 't:' .. t.id, 'rq')
end

-- The pause of toolwire_store::pause_before_next.
local function pause(t)
  if t.at <= 1 then return 0 end
  if t.at == 2 then return math.floor(t.ld / 2) end
  if t.at == 3 then return t.ld * 3 end
  return t.ld * 15
end

local function due(t, at)
  redis.call('ZADD', P .. 'due:' .. t.dk, at, t.id)
end

local function due_after_lease(t)
  due(t, t.le + pause(t))
end

local function never_due(t)
  redis.call('ZREM', P .. 'due:' .. t.dk, t.id)
end

local function release_quota(t)
  local key = P .. 'q:' .. t.q
  if redis.call('DECR', key) <= 0 then redis.call('DEL', key) end
end

-- Deletes everything of a task.
local function purge(t)
  if t.st ~= 'e' then release_quota(t) end
  never_due(t)
  redis.call('ZREM', P .. 'o:' .. t.o, t.id)
  redis.call('ZREM', P .. 'exp', t.id)
  redis.call('DEL', P .. 't:' .. t.id, P .. 'j:' .. t.id)
end

local function changed(t)
  t.rv = t.rv + 1
  t.u = math.max(t.u, now)
end

local function topic(t)
  if t.se == '' then return 'task:' .. t.id end
  return 'task:' .. t.id .. ':' .. t.se
end

-- The open questions: key, question, key, question, …
local function open_of(t)
  if t.op == '' then return {} end
  return cmsgpack.unpack(t.op)
end

local function set_open(t, open)
  t.op = #open > 0 and cmsgpack.pack(open) or ''
  t.s = #open > 0 and 'input_required' or 'working'
end

-- Whether a journal may have these entries as well: nil, or which limit is met.
local function beyond(t, entries)
  local bytes = t.jb
  for _, entry in ipairs(entries) do bytes = bytes + #entry end
  if bytes > tonumber(ARGV[1]) then return 'bytes' end
  if t.jc + #entries > tonumber(ARGV[2]) then return 'entries' end
  return nil
end

-- Adds to the journal. More arguments than these at once would be too many for Lua.
local AT_ONCE = 500
local function push(t, entries)
  for first = 1, #entries, AT_ONCE do
    redis.call('RPUSH', P .. 'j:' .. t.id, unpack(entries, first, math.min(first + AT_ONCE - 1, #entries)))
  end
  for _, entry in ipairs(entries) do t.jb = t.jb + #entry end
  t.jc = t.jc + #entries
  if #entries > 0 then t.at = 0 end
end

local function head(t)
  return { t.id, t.tool, t.s, t.ie, t.nt, t.c, t.u, shown(t), t.pl, t.rv, t.se }
end

local function view(t)
  return { head(t), open_of(t), redis.call('HGET', P .. 't:' .. t.id, 'oc') }
end
