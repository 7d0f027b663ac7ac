-- ARGV: 3 id, 4 fence, 5 token, 6 n, 7 what, 8… its parts
local t = load(ARGV[3])
local n, what = tonumber(ARGV[6]), ARGV[7]
if not t or t.f ~= tonumber(ARGV[4]) or t.tk ~= ARGV[5] then return { 'lost' } end
if n == 0 or n < t.n then return { 'conflict' } end
if n == t.n then return { 'ok', t.nr } end
if t.st ~= 'l' then return { 'lost' } end

local topics = {}
local function rest(first)
  local values = {}
  for i = first, #ARGV do values[#values + 1] = ARGV[i] end
  return values
end
local function note(text)
  if text ~= '' then t.nt = text end
end
local function tell()
  changed(t)
  topics[#topics + 1] = topic(t)
end
local function ready()
  t.st, t.hd = 'r', 0
  if t.wk == 0 then life_work(t) end
  due(t, now)
  topics[#topics + 1] = 'ready'
end
-- The claim of this run does not count.
local function uncount()
  t.at = math.max(t.at - 1, 0)
end

local steps = {}

-- 8… entries
function steps.record()
  local entries = rest(8)
  local limit = beyond(t, entries)
  if limit then return limit end
  push(t, entries)
  due_after_lease(t)
end

-- 8 note
function steps.note()
  t.nt = ARGV[8]
  tell()
end

-- 8 wake, 9 hold, 10 note, 11 how many questions, then key, question, …, then entries
function steps.park()
  local wake, hold, asked = tonumber(ARGV[8]), ARGV[9] == '1', tonumber(ARGV[11])
  local entries = rest(12 + asked * 2)
  local limit = beyond(t, entries)
  if limit then return limit end
  push(t, entries)
  local open, seen = {}, {}
  for i = 12, 11 + asked * 2, 2 do
    local key = ARGV[i]
    local is_answered = redis.call('HEXISTS', P .. 't:' .. t.id, 'w:' .. key) == 1
    if not is_answered and not seen[key] then
      seen[key] = true
      open[#open + 1], open[#open + 2] = key, ARGV[i + 1]
    end
  end
  set_open(t, open)
  note(ARGV[10])
  tell()
  t.hd = hold and 1 or 0
  if hold then
    waits_or_works(t, #open)
    due_after_lease(t)
    return
  end
  uncount()
  if #open == 0 and (asked > 0 or not wake) then
    ready()
  elseif wake then
    t.st = 't'
    life_sleep(t, now + wake)
    due(t, now + wake)
  else
    t.st = 'p'
    life_park(t)
    never_due(t)
  end
end

-- 8 status, 9 outcome, 10 is_error, 11 keep, 12 note
function steps.finish()
  set_open(t, {})
  t.st, t.s, t.ie, t.hd = 'e', ARGV[8], ARGV[10], 0
  note(ARGV[12])
  redis.call('HSET', P .. 't:' .. t.id, 'oc', ARGV[9])
  if t.s == 'completed' then strip(t) end
  life_end(t, tonumber(ARGV[11]))
  never_due(t)
  release_quota(t)
  tell()
end

function steps.release()
  uncount()
  ready()
end

local limit = steps[what]()
if limit then return { 'large', limit } end
t.n, t.nr = n, t.rv
save(t, 'st', 's', 'hd', 'u', 'fl', 'wk', 'un', 'rv', 'at', 'n', 'nr', 'jb', 'jc', 'op', 'ie', 'nt')
if #topics > 0 then publish(table.concat(topics, ' ')) end
return { 'ok', t.rv }
