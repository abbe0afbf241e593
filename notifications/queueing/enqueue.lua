-- Count a queue's new deliveries, and enqueue their messages: wake-ups, or in a burst the pulls of
-- free slots, whose tokens are acquired.
-- KEYS: the queue, the count, then the slots of pulls. ARGV: the new deliveries, the seconds that the
-- count lasts, the deliveries that are no burst, the seconds that a token lasts, each slot's nonce
-- and pull, then the wake-ups.
-- Returns 1 in a burst, else 0.
local MAX_COUNT = 1e9
local counted = stored_number(redis.pcall('GET', KEYS[2]), 0, MAX_COUNT) or 0
local total = counted + tonumber(ARGV[1])
if counted > 0 then
  redis.call('SET', KEYS[2], total, 'KEEPTTL')
else
  redis.call('SET', KEYS[2], total, 'EX', ARGV[2])
end
local slots = #KEYS - 2
if total <= tonumber(ARGV[3]) then
  for wakeup = 5 + 2 * slots, #ARGV do
    redis.call('LPUSH', KEYS[1], ARGV[wakeup])
  end
  return 0
end
for slot = 1, slots do
  if redis.call('SET', KEYS[2 + slot], ARGV[3 + 2 * slot], 'NX', 'EX', ARGV[4]) then
    redis.call('LPUSH', KEYS[1], ARGV[4 + 2 * slot])
  end
end
return 1
