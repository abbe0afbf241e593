-- Count results of an account, and open or close its circuit accordingly.
-- Return {-1} without a change, {0} if it was closed, or {until} if it was opened; after that, each
-- other scope against which there is enough evidence, and its refused recipients with commas.
--
-- A circuit is a hash. "s" and "f" with a bucket number are counts of successes and failures.
-- "until", "opened_at", "openings", and "reason" exist while it is not closed; "probe" and
-- "probe_until" are the lease of the probe. "r" with a recipient is the time of a failure or, once
-- the circuit is open, of a refusal. "e", a scope, "/", and a recipient is the time of a refusal of
-- uncertain reach.
--
-- KEYS: the circuit, the index of accounts. ARGV: account, now, the rules as JSON, the reason;
-- then 'trip', the minimum time, and refused recipients with commas; or 'share' and the probe's
-- token; or 'record', successes, failures, the probe's token, the scopes of acceptances with commas,
-- and JSON of the refused recipients by scope and those of the failures, or ''.

local NOTHING, CLOSED, OWN_SCOPE = -1, 0, 'account'
local circuit, index = KEYS[1], KEYS[2]
local account, now, rules, reason = ARGV[1], tonumber(ARGV[2]), cjson.decode(ARGV[3]), ARGV[4]
local found = redis.call('HMGET', circuit, 'until', 'probe')
local open_until, leased = tonumber(found[1] or 0), found[2]
local bucket = math.floor(now / rules.bucket)

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

-- Remember refused recipients. Return whether one of them was not known.
local function refuse(recipients)
    local room = rules.max_refused
    for _, field in ipairs(redis.call('HKEYS', circuit)) do
        if string.sub(field, 1, 1) == 'r' and field ~= 'reason' then
            room = room - 1
        end
    end
    local is_new = false
    for _, recipient in ipairs(recipients) do
        if redis.call('HEXISTS', circuit, 'r' .. recipient) == 0 then
            is_new = true
            room = room - 1
        end
        if room >= 0 then
            redis.call('HSET', circuit, 'r' .. recipient, now)
        end
    end
    return is_new
end

local function trip(at_least)
    local recipients = {}
    for recipient in string.gmatch(ARGV[7] or '', '%x+') do
        recipients[#recipients + 1] = recipient
    end
    refuse(recipients)
    if now >= open_until then
        return {open(at_least)}
    end
    -- In flight when the circuit opened; it may require a longer wait than the first did.
    if now + at_least > open_until then
        block(now + at_least)
    end
    return {NOTHING}
end

local function settle_probe(successes, failures, refused, failed, is_accepted)
    if failures > 0 or (#refused > 0 and refuse(refused)) then
        refuse(failed)
        return {open(0)}
    elseif successes > 0 and (#refused == 0 or is_accepted) then
        redis.call('DEL', circuit)
        return {CLOSED}
    end
    -- Nothing new, also if a recipient that was refused before was refused again.
    redis.call('HDEL', circuit, 'probe', 'probe_until')
    return {NOTHING}
end

-- Store evidence, and drop what is old or disproved. Return counts of results in the window, the
-- number of recipients with failures, and the recipients by scope.
local function weigh(accepted, refused)
    local sums, failing, scopes, known = {s = 0, f = 0}, 0, {}, {}
    local function add(scope, recipient)
        local name = 'e' .. scope .. '/' .. recipient
        if not known[name] then
            known[name], scopes[scope] = true, scopes[scope] or {}
            table.insert(scopes[scope], recipient)
        end
        return name
    end
    local fields = redis.call('HGETALL', circuit)
    for i = 1, #fields, 2 do
        local name, value = fields[i], tonumber(fields[i + 1])
        local kind, number = string.match(name, '^([sf])(%d+)$')
        local scope, recipient = string.match(name, '^e(.-)/(%x+)$')
        local is_old = false
        if kind then
            is_old = tonumber(number) <= bucket - rules.buckets
            sums[kind] = sums[kind] + (is_old and 0 or value)
        elseif scope then
            is_old = accepted[scope] or value <= now - rules.evidence_ttl
            if not is_old then
                add(scope, recipient)
            end
        elseif string.match(name, '^r%x+$') then
            is_old = math.floor(value / rules.bucket) <= bucket - rules.buckets
            failing = failing + (is_old and 0 or 1)
        end
        if is_old then
            redis.call('HDEL', circuit, name)
        end
    end
    for scope, recipients in pairs(refused) do
        for _, recipient in ipairs(recipients) do
            redis.call('HSET', circuit, add(scope, recipient), now)
        end
    end
    return sums, failing, scopes
end

local function count(successes, failures, accepted, refused, failed)
    if successes > 0 then
        redis.call('HINCRBY', circuit, 's' .. bucket, successes)
    end
    if failures > 0 then
        redis.call('HINCRBY', circuit, 'f' .. bucket, failures)
        refuse(failed)
    end
    local sums, failing, scopes = weigh(accepted, refused)
    local kept = (rules.buckets + 1) * rules.bucket
    redis.call('PEXPIRE', circuit, next(scopes) and rules.evidence_ttl or kept)
    local answer = {NOTHING}
    local share = sums.f * 100 / (sums.f + sums.s)
    local is_failing = sums.f >= rules.min_failures and share >= rules.min_percent
    for scope, recipients in pairs(scopes) do
        if #recipients >= rules.min_recipients then
            for _, recipient in ipairs(recipients) do
                redis.call('HDEL', circuit, 'e' .. scope .. '/' .. recipient)
            end
            if scope == OWN_SCOPE then
                refuse(recipients)
                answer[1] = open(0)
            else
                answer[#answer + 1] = scope
                answer[#answer + 1] = table.concat(recipients, ',')
            end
        end
    end
    if answer[1] == NOTHING and is_failing and failing >= rules.min_recipients then
        answer[1] = open(0)
    end
    return answer
end

redis.call('ZADD', index, now, account)
redis.call('ZREMRANGEBYSCORE', index, '-inf', now - rules.listing_window)
if ARGV[5] == 'trip' then
    return trip(tonumber(ARGV[6]))
elseif ARGV[5] == 'share' then
    if ARGV[6] == leased then
        redis.call('HDEL', circuit, 'probe_until')
    end
    return {NOTHING}
end
local successes, failures, token = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local accepted, refused, failed = {}, {}, {}
for scope in string.gmatch(ARGV[9], '[^,]+') do
    accepted[scope] = true
end
if ARGV[10] ~= '' then
    local evidence = cjson.decode(ARGV[10])
    refused, failed = evidence[1], evidence[2]
end
if open_until == 0 then
    return count(successes, failures, accepted, refused, failed)
elseif token ~= '' and token == leased then
    return settle_probe(successes, failures, refused[OWN_SCOPE] or {}, failed, accepted[OWN_SCOPE])
end
if #(refused[OWN_SCOPE] or {}) > 0 then
    refuse(refused[OWN_SCOPE])
end
return {NOTHING}
