-- May somebody ask once more in this window, and how much is left of it?
--
-- A counter with a lifetime: the window begins with the first that counts, and ends with the key.
-- What is refused does not count, so nobody who goes on asking puts off the end.
--
-- KEYS: the counter. ARGV: how many a window has, its milliseconds, what this one costs; 0 looks.
-- Answers: 1 if it may, else 0; how many are left; milliseconds until the window ends.

local limit, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
local ends = redis.call('PTTL', KEYS[1])
local allowed = used + math.max(cost, 1) <= limit
if allowed and cost > 0 then
    used = redis.call('INCRBY', KEYS[1], cost)
end
if ends < 0 then
    ends = window
    redis.call('PEXPIRE', KEYS[1], window)
end
return {allowed and 1 or 0, math.max(limit - used, 0), ends}
