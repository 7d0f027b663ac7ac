-- ARGV: 3 id, 4 owner, 5 quota, 6 limit, 7 tool, 8 due index, 9 request, 10 keep, 11 ttl, 12 poll, 13 session,
-- 14 format, 15 key, 16 token, 17 lease, 18… journal
local id, owner, token, lease = ARGV[3], ARGV[4], ARGV[16], tonumber(ARGV[17])
local t = load(id)
if t then
  if t.o ~= owner then return { 'conflict' } end
  local fence = false
  -- The same call once more: it renews the lease that it has made.
  if t.st == 'l' and t.f == 1 and t.tk == token and token ~= '' then
    t.le, t.ld, fence = now + lease, lease, 1
    due_after_lease(t)
    save(t, 'le', 'ld')
  end
  return { 'ok', now, fence, view(t) }
end
if redis.call('EXISTS', P .. 't:' .. id) == 1 then return { 'conflict' } end
local quota = P .. 'q:' .. ARGV[5]
if tonumber(redis.call('GET', quota) or 0) >= tonumber(ARGV[6]) then return { 'full' } end

t = {
  id = id, o = owner, q = ARGV[5], st = token == '' and 'r' or 'l', s = 'working', hd = 0, c = now, u = now,
  kp = tonumber(ARGV[10]), tl = tonumber(ARGV[11]), fl = now, wk = 1, un = 0, rv = 1,
  f = token == '' and 0 or 1, tk = token, le = now + lease, ld = lease, at = token == '' and 0 or 1, n = 0, nr = 1,
  ai = '', jb = 0, jc = 0, dk = ARGV[8], op = '', ie = '0', nt = '', pl = ARGV[12], se = ARGV[13], tool = ARGV[7],
}
redis.call('INCR', quota)
life_work(t)
local journal = {}
for i = 18, #ARGV do journal[#journal + 1] = ARGV[i] end
local attempt = t.at
push(t, journal)
t.at = attempt
redis.call('HSET', P .. 't:' .. id, 'rq', ARGV[9], 'fm', ARGV[14], 'ky', ARGV[15])
save(t, unpack(FIELDS))
redis.call('ZADD', P .. 'o:' .. owner, now, id)
if token == '' then
  due(t, now)
  publish(topic(t) .. ' ready')
else
  due_after_lease(t)
  publish(topic(t))
end
return { 'ok', now, t.f > 0 and t.f, view(t) }
