-- Count results of an account, and open or close its circuit accordingly.
-- Return -1 without a change, 0 if it was closed, or the time until which it was opened.
--
-- A circuit is a hash. "s" and "f" with a bucket number are counts of successes and failures.
-- "until", "opened_at", "openings", and "reason" exist while it is not closed; "probe" and
-- "probe_until" are the lease of the probe.
--
-- KEYS: the circuit, the index of accounts. ARGV: account, now, the rules as JSON, the reason;
-- then 'trip' and the minimum time, or 'record', successes, failures, and the probe's token.

local NOTHING, CLOSED = -1, 0
local circuit, index = KEYS[1], KEYS[2]
local account, now, rules, reason = ARGV[1], tonumber(ARGV[2]), cjson.decode(ARGV[3]), ARGV[4]
local found = redis.call('HMGET', circuit, 'until', 'probe')
local open_until, leased = tonumber(found[1] or 0), found[2]

local function block(until_then)
    redis.call('HSET', circuit, 'until', until_then)
    redis.call('PEXPIRE', circuit, until_then - now + rules.circuit_ttl)
    return until_then
end

local function open(at_least)
    local doublings = math.min(redis.call('HINCRBY', circuit, 'openings', 1) - 1, 30)
    local wait = math.min(rules.first_wait * 2 ^ doublings, rules.max_wait)
    redis.call('HSETNX', circuit, 'opened_at', now)
    if reason ~= '' then
        redis.call('HSET', circuit, 'reason', reason)
    end
    redis.call('HDEL', circuit, 'probe', 'probe_until')
    return block(now + math.max(wait, at_least))
end

local function trip(at_least)
    if now >= open_until then
        return open(at_least)
    end
    -- In flight when the circuit opened; it may require a longer wait than the first did.
    if now + at_least > open_until then
        block(now + at_least)
    end
    return NOTHING
end

local function settle_probe(successes, failures)
    if failures > 0 then
        return open(0)
    elseif successes > 0 then
        redis.call('DEL', circuit)
        return CLOSED
    end
    redis.call('HDEL', circuit, 'probe', 'probe_until')
    return NOTHING
end

local function count(successes, failures)
    local bucket = math.floor(now / rules.bucket)
    if successes > 0 then
        redis.call('HINCRBY', circuit, 's' .. bucket, successes)
    end
    if failures > 0 then
        redis.call('HINCRBY', circuit, 'f' .. bucket, failures)
    end
    local sums = {s = 0, f = 0}
    local fields = redis.call('HGETALL', circuit)
    for i = 1, #fields, 2 do
        local kind, number = string.match(fields[i], '^([sf])(%d+)$')
        if kind and tonumber(number) > bucket - rules.buckets then
            sums[kind] = sums[kind] + tonumber(fields[i + 1])
        elseif kind then
            redis.call('HDEL', circuit, fields[i])
        end
    end
    redis.call('PEXPIRE', circuit, (rules.buckets + 1) * rules.bucket)
    local share = sums.f * 100 / (sums.f + sums.s)
    if sums.f >= rules.min_failures and share >= rules.min_percent then
        return open(0)
    end
    return NOTHING
end

redis.call('ZADD', index, now, account)
redis.call('ZREMRANGEBYSCORE', index, '-inf', now - rules.listing_window)
if ARGV[5] == 'trip' then
    return trip(tonumber(ARGV[6]))
end
local successes, failures, token = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
if open_until == 0 then
    return count(successes, failures)
elseif token ~= '' and token == leased then
    return settle_probe(successes, failures)
end
return NOTHING
