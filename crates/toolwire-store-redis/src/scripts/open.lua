-- ARGV: 7 node, 8 pending, 9 the fence that is taken over
local node, over = ARGV[7], tonumber(ARGV[9])
local fence, state = tonumber(get('fence')), get('state')
local wanted = (over or 0) + 1
if fence == wanted and get('node') == node then return { 'ok', wanted } end
if over then
  if fence ~= over or state ~= 'open' then return { 'lost' } end
elseif fence then
  return { 'conflict' }
end
redis.call('HSET', H, 'node', node, 'fence', wanted, 'pending', ARGV[8], 'state', 'open')
if not over then redis.call('HSET', H, 'last', 0, 'reader', 0, 'first', 1, 'bytes', 0) end
keep(ARGV[6])
if over then tell() end
return { 'ok', wanted }
