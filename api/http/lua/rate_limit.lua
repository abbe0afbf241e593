-- Return the status of rate limit counters, and count a request that all of them allow so far.
--
-- A counter has a lifetime: its window begins with the first request that counts, and ends with the
-- key. A refused request doesn't count, so repeating it doesn't extend the window. Counters after
-- one that refuses aren't changed.
--
-- KEYS: the counters. ARGV: the milliseconds of a window, then for each counter its limit and the
-- cost of the request, which is 0 to look only.
-- Returns for each counter: 1 if it allows the request, else 0; the number left; the milliseconds
-- until the window ends.

local MAX_COUNT = 1e9
local window = tonumber(ARGV[1])
local answers = {}
local refused = false
for number, key in ipairs(KEYS) do
    local limit, cost = tonumber(ARGV[2 * number]), tonumber(ARGV[2 * number + 1])
    local used = stored_number(redis.pcall('GET', key), 0, MAX_COUNT) or 0
    local ends = redis.call('PTTL', key)
    local allowed = used + math.max(cost, 1) <= limit
    if allowed and cost > 0 and not refused then
        used = used + cost
        redis.call('SET', key, used, 'KEEPTTL')
    end
    if ends < 0 or ends > window then
        ends = window
        redis.call('PEXPIRE', key, window)
    end
    refused = refused or not allowed
    answers[number] = {allowed and 1 or 0, math.max(limit - used, 0), ends}
end
return answers
