-- ARGV: 3 lease, 4… id, fence, token
local lease, lost = tonumber(ARGV[3]), {}
for i = 4, #ARGV, 3 do
  local t = load(ARGV[i])
  if t and t.st == 'l' and t.f == tonumber(ARGV[i + 1]) and t.tk == ARGV[i + 2] then
    t.le, t.ld = now + lease, lease
    due_after_lease(t)
    save(t, 'le', 'ld')
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return { now, lost }
