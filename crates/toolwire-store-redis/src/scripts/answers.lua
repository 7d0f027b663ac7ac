-- All that was answered since the lease began, and not only since the run parked: an answer may come while it parks again.
-- ARGV: 3 id, 4 fence, 5 token
local t = load(ARGV[3])
if not t or t.st ~= 'l' or t.f ~= tonumber(ARGV[4]) or t.tk ~= ARGV[5] then return { 'lost' } end
local places = {}
for place in string.gmatch(t.ai, '%d+') do places[#places + 1] = tonumber(place) end
table.sort(places)
local entries = {}
for _, place in ipairs(places) do entries[#entries + 1] = redis.call('LINDEX', P .. 'j:' .. t.id, place) end
return { 'ok', entries }
