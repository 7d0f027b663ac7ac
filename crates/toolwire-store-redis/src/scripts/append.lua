-- ARGV: 7 fence, 8 first number, 9 state, 10… events
local first, state = tonumber(ARGV[8]), ARGV[9]
if get('fence') ~= ARGV[7] then return { 'lost' } end
if first == 0 then return { 'conflict' } end
local last, is_open = tonumber(get('last')), get('state') == 'open'
local from = #ARGV + 1
for i = 10, #ARGV do
  local number = first + i - 10
  if number > last then
    from = i
    break
  end
  local id = text_of(number) .. '-0'
  local there = redis.call('XRANGE', E, id, id)[1]
  if not there or there[2][2] ~= ARGV[i] then return { 'conflict' } end
end
if not is_open then
  if from > #ARGV and get('state') == state then return { 'ok' } end
  return { 'conflict' }
end
for i = from, #ARGV do add(first + i - 10, ARGV[i]) end
redis.call('HSET', H, 'state', state)
keep(state == 'open' and ARGV[6] or ARGV[5])
tell()
return { 'ok' }
