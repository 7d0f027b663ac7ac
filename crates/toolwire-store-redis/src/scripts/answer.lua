-- ARGV: 3 owner, 4 id, 5… key, entry
local t = load_of(ARGV[3], ARGV[4])
if not t then return { 'none' } end
local given = {}
for i = 5, #ARGV, 2 do
  -- The first answer to a question is the one that counts.
  if not given[ARGV[i]] then given[ARGV[i]] = ARGV[i + 1] end
end
local open, taken, entries, left, names = open_of(t), {}, {}, {}, {}
local is_open = {}
for i = 1, #open, 2 do
  is_open[open[i]] = true
  if not given[open[i]] then
    left[#left + 1], left[#left + 2] = open[i], open[i + 1]
    names[#names + 1] = open[i]
  end
end
-- In the order in which they were given.
for i = 5, #ARGV, 2 do
  if is_open[ARGV[i]] then
    is_open[ARGV[i]] = nil
    taken[#taken + 1], entries[#entries + 1] = ARGV[i], ARGV[i + 1]
  end
end
if #taken == 0 then return { 'ok', taken, names, 0 } end
local limit = beyond(t, entries)
if limit then return { 'large', limit } end

for i, key in ipairs(taken) do
  local place = t.jc + i - 1
  redis.call('HSET', P .. 't:' .. t.id, 'w:' .. key, place)
  t.ai = t.ai == '' and tostring(place) or t.ai .. ',' .. place
end
push(t, entries)
set_open(t, left)
changed(t)
local topics, ready = topic(t), 0
if #left == 0 and (t.st == 'p' or t.st == 't') then
  t.st, ready = 'r', 1
  life_work(t)
  due(t, now)
  topics = topics .. ' ready'
elseif t.st == 'p' or t.hd == 1 then
  waits_or_works(t, #left)
end
if t.st == 'l' then due_after_lease(t) end
save(t, 'st', 's', 'u', 'fl', 'wk', 'un', 'rv', 'at', 'ai', 'jb', 'jc', 'op')
publish(topics)
return { 'ok', taken, names, ready }
