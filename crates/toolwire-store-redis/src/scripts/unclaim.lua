-- Gives back what was claimed by a node that cannot read it, as if it had not been claimed: others may be able to.
-- ARGV: 3 how long it is left to them, 4… id, fence, token
for i = 4, #ARGV, 3 do
  local t = load(ARGV[i])
  if t and t.st == 'l' and t.f == tonumber(ARGV[i + 1]) and t.tk == ARGV[i + 2] then
    t.st, t.at = 'r', math.max(t.at - 1, 0)
    due(t, now + tonumber(ARGV[3]))
    save(t, 'st', 'at')
  end
end
return 1
