-- Return the permission of each circuit: 0 allowed, -1 one probe, else the time until which it is
-- blocked.
--
-- KEYS: circuits. ARGV: now, the token of granted probes, the lease time of a probe.
-- Times are in milliseconds by the clients' clocks; keys expire by Valkey's clock.

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
