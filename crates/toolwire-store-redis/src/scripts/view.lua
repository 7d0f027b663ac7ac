-- ARGV: 3 owner, 4 id
local t = load_of(ARGV[3], ARGV[4])
if not t then return false end
return view(t)
