-- ARGV: 3 owner, 4 id, 5 note
local t = load_of(ARGV[3], ARGV[4])
if not t then return false end
if t.st == 'e' then return { 1, view(t) } end
set_open(t, {})
t.st, t.s, t.f, t.tk, t.nt, t.hd = 'e', 'cancelled', t.f + 1, '', ARGV[5], 0
strip(t)
life_end(t, 0)
never_due(t)
release_quota(t)
changed(t)
save(t, 'st', 's', 'hd', 'u', 'fl', 'wk', 'un', 'rv', 'f', 'tk', 'op', 'nt')
publish(topic(t))
return { 0, view(t) }
