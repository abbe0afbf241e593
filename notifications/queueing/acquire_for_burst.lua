-- Count a queue's new deliveries. In a burst, acquire the free ones of some pull slots.
-- KEYS: the count, then the slots. ARGV: the new deliveries, the seconds that the count lasts, the
-- deliveries that are no burst, the seconds that a token lasts, then each slot's nonce.
-- Returns nil without a burst, else the 1-based positions of the acquired slots.
local total = redis.call('INCRBY', KEYS[1], ARGV[1])
if total == tonumber(ARGV[1]) then
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
if total <= tonumber(ARGV[3]) then
  return nil
end
local acquired = {}
for slot = 2, #KEYS do
  if redis.call('SET', KEYS[slot], ARGV[slot + 3], 'NX', 'EX', ARGV[4]) then
    table.insert(acquired, slot - 1)
  end
end
return acquired
