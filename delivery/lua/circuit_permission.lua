-- Return the permission of each circuit: {0, 0} allowed, {1, until, doubted} blocked,
-- {2, since, doubted, ...} one probe, with the end of the circuit's wait and the recipients that
-- failed, or {3, until, 0} paused by a rate limit. "doubted" is when evidence alone opened the
-- circuit, or 0.
--
-- KEYS: circuits. ARGV: now, the token of granted probes, the lease time of a probe, the time after
-- which others ask again during a probe, and the longest wait of a circuit.
-- Times are in milliseconds by the clients' clocks; keys expire by Valkey's clock.

local ALLOWED, BLOCKED, PROBE, PAUSED = 0, 1, 2, 3
local now, token, lease, check = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local latest = now + tonumber(ARGV[5])
local answers = {}

local function grant(circuit, since, doubted)
    redis.call('HSET', circuit, 'probe', token, 'probe_until', now + lease)
    local answer = {PROBE, since, doubted}
    for _, field in ipairs(redis.call('HKEYS', circuit)) do
        local recipient = string.match(field, '^r(%x+)$')
        if recipient then
            answer[#answer + 1] = recipient
        end
    end
    return answer
end

for i, circuit in ipairs(KEYS) do
    local found = redis.call('HMGET', circuit, 'until', 'probe_until', 'doubted', 'paused')
    local open_until = stored_number(found[1], 0, latest) or 0
    local probe_until = stored_number(found[2], 0, latest) or 0
    local doubted = stored_number(found[3], 0, latest) or 0
    local paused = stored_number(found[4], 0, latest) or 0
    if now < paused and open_until < paused then
        answers[i] = {PAUSED, paused, 0}
    elseif open_until == 0 then
        answers[i] = {ALLOWED, 0}
    elseif now < open_until then
        answers[i] = {BLOCKED, open_until, doubted}
    elseif now < probe_until then
        answers[i] = {BLOCKED, math.min(probe_until, now + check), doubted}
    else
        answers[i] = grant(circuit, open_until, doubted)
    end
end
return answers
