-- May these accounts be sent to? For each: 0 yes, -1 one message, else until when not.
--
-- KEYS: circuits. ARGV: now, a token for whatever probe is given, how long a probe is leased.
-- Times are milliseconds of the callers' clocks; keys expire by Valkey's own.

local now, token, lease = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local answers = {}
for i, circuit in ipairs(KEYS) do
    local found = redis.call('HMGET', circuit, 'until', 'probe_until')
    local blocked_until = math.max(tonumber(found[1] or 0), tonumber(found[2] or 0))
    if blocked_until == 0 then
        answers[i] = 0
    elseif now < blocked_until then
        answers[i] = blocked_until
    else
        redis.call('HSET', circuit, 'probe', token, 'probe_until', now + lease)
        answers[i] = -1
    end
end
return answers
