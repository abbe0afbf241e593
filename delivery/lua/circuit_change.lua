-- Count results of an account, and open or close its circuit accordingly.
-- Return {-1} without a change, {0} if it was closed, or {until} if it was opened; after that, 1 if
-- the account has refused recipients, or 0; after that, each other scope against which there is
-- enough evidence, and its refused recipients with commas.
--
-- A circuit is a hash. "s" and "f" with a bucket number are counts of successes and failures.
-- "until", "opened_at", "openings", and "reason" exist while it is not closed; "probe" and
-- "probe_until" are the lease of the probe. "doubted" is the time of the opening if only evidence
-- opened it, and "trial_failures" counts failures of trials. "paused" is the end of a scope's rate
-- limit, and "pauses" how many came one after the other. "r" with a recipient is the time of a
-- failure or, once the circuit is open, of a refusal. "e", a scope, "/", and a recipient is the time
-- of a refusal of uncertain reach, while it is evidence.
--
-- The refused recipients of an account are a sorted set of a scope, "/", and a recipient, by the
-- time of the last refusal of uncertain reach that is no evidence: it was disproved, or was counted
-- already.
--
-- KEYS: the circuit, the index of accounts, the account's refused recipients, and the index of its
-- scopes. ARGV: the circuit's name, now, the rules as JSON, the reason, the circuit's own scope,
-- '' for the account; then 'trip', the minimum time, refused recipients with commas, and 1 if it is
-- by evidence, or 0; or 'pause' and its minimum time; or 'share' and the probe's token; or 'record',
-- successes, failures, the token of a probe or a trial, JSON of the scopes of acceptances, and JSON
-- of the refused recipients by scope, those of the failures, the disproved refusals by scope, and
-- the accepted recipients by scope, or ''.

local NOTHING, CLOSED = -1, 0
local circuit, index, known, scopes_index = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, now, rules, reason = ARGV[1], tonumber(ARGV[2]), cjson.decode(ARGV[3]), ARGV[4]
local own_scope = ARGV[5]
local latest = now + rules.longest_wait
local found = redis.call('HMGET', circuit, 'until', 'probe', 'doubted', 'paused')
local open_until, leased = stored_number(found[1], 0, latest) or 0, found[2]
local doubted = stored_number(found[3], 0, latest) and found[3]
local paused_until = stored_number(found[4], 0, latest) or 0
local bucket = math.floor(now / rules.bucket)

local function answer(change)
    return {change, redis.call('EXISTS', known)}
end

-- Add to a count of the circuit, and return the sum.
local function add_to(field, number)
    local sum = (stored_number(redis.call('HGET', circuit, field), 0, rules.max_count) or 0) + number
    redis.call('HSET', circuit, field, sum)
    return sum
end

-- Let the circuit expire, but not before a pause.
local function expire_after(time)
    local least = paused_until > now and paused_until - now + rules.max_pause or 0
    redis.call('PEXPIRE', circuit, math.max(time, least))
end

local function block(until_then)
    redis.call('HSET', circuit, 'until', until_then)
    expire_after(until_then - now + rules.circuit_ttl)
    return until_then
end

local function open(at_least, is_doubted)
    local doublings = math.min(add_to('openings', 1) - 1, 30)
    local wait = math.min(rules.first_wait * 2 ^ doublings, rules.max_wait)
    if redis.call('HSETNX', circuit, 'opened_at', now) == 1 and is_doubted then
        redis.call('HSET', circuit, 'doubted', now)
    end
    if reason ~= '' then
        redis.call('HSET', circuit, 'reason', reason)
    end
    redis.call('HDEL', circuit, 'probe', 'probe_until')
    return block(now + math.max(wait, at_least))
end

-- Remember recipients of failures, or of refusals that surely concern the account.
local function note(recipients)
    if #recipients == 0 then
        return
    end
    local room = rules.max_noted
    for _, field in ipairs(redis.call('HKEYS', circuit)) do
        if string.match(field, '^r%x+$') then
            room = room - 1
        end
    end
    for _, recipient in ipairs(recipients) do
        if redis.call('HEXISTS', circuit, 'r' .. recipient) == 0 then
            room = room - 1
        end
        if room >= 0 then
            redis.call('HSET', circuit, 'r' .. recipient, now)
        end
    end
end

-- Pause the scope, and again while no minute passed without one.
local function pause(at_least)
    if now < paused_until then
        -- In flight when the pause began; it may require a longer one.
        paused_until = math.max(paused_until, now + at_least)
    else
        local doublings = math.min(add_to('pauses', 1) - 1, 30)
        local wait = math.min(rules.first_pause * 2 ^ doublings, rules.max_pause)
        paused_until = now + (at_least > 0 and at_least or wait)
    end
    redis.call('HSET', circuit, 'paused', paused_until)
    expire_after(open_until == 0 and 0 or open_until - now + rules.circuit_ttl)
    return answer(NOTHING)
end

local function is_known(scope, recipient)
    local at = redis.call('ZSCORE', known, scope .. '/' .. recipient)
    return stored_number(at, now - rules.evidence_ttl + 1, latest)
end

-- Remember refused recipients, whose next refusal says nothing new. Return whether one was new.
local function remember(scope, recipients)
    local is_new = false
    for _, recipient in ipairs(recipients) do
        is_new = is_new or not is_known(scope, recipient)
        redis.call('ZADD', known, now, scope .. '/' .. recipient)
    end
    if #recipients > 0 then
        redis.call('ZREMRANGEBYSCORE', known, '-inf', now - rules.evidence_ttl)
        redis.call('ZREMRANGEBYSCORE', known, '(' .. latest, '+inf')
        redis.call('ZREMRANGEBYRANK', known, 0, -1 - rules.max_refused)
        redis.call('PEXPIRE', known, rules.evidence_ttl)
    end
    return is_new
end

local function remember_all(by_scope)
    for scope, recipients in pairs(by_scope) do
        remember(scope, recipients)
    end
end

local function trip(at_least, is_doubted)
    local recipients = {}
    for recipient in string.gmatch(ARGV[8], '%x+') do
        recipients[#recipients + 1] = recipient
    end
    if is_doubted then
        remember(own_scope, recipients)
    else
        redis.call('HDEL', circuit, 'doubted')
        note(recipients)
    end
    if now >= open_until then
        return answer(open(at_least, is_doubted))
    end
    -- In flight when the circuit opened; it may require a longer wait than the first did.
    if now + at_least > open_until then
        block(now + at_least)
    end
    return answer(NOTHING)
end

-- Of the evidence about scopes, keep only the last.
local function limit_evidence(stored)
    if #stored > rules.max_evidence then
        table.sort(stored, function(a, b) return a.at < b.at end)
        for i = 1, #stored - rules.max_evidence do
            redis.call('HDEL', circuit, stored[i].field)
        end
    end
end

-- Store evidence, and drop what is old or disproved. Return counts of results in the window, the
-- number of recipients with failures, and the recipients by scope.
local function weigh(accepted, refused)
    local sums, failing, scopes, added, stored_later = {s = 0, f = 0}, 0, {}, {}, {}
    local function add(scope, recipient, at)
        local field = 'e' .. scope .. '/' .. recipient
        if not added[field] then
            added[field], scopes[scope] = true, scopes[scope] or {}
            table.insert(scopes[scope], recipient)
            if scope ~= own_scope and scope ~= '/rate' then
                stored_later[#stored_later + 1] = {field = field, at = at}
            end
        end
        return field
    end
    local fields = redis.call('HGETALL', circuit)
    for i = 1, #fields, 2 do
        local field, stored = fields[i], fields[i + 1]
        local value = stored_number(stored, 0, latest)
        local kind, number = string.match(field, '^([sf])(%d+)$')
        local scope, recipient = string.match(field, '^e(.*)/(%x+)$')
        local is_old = false
        if kind then
            local results = stored_number(stored, 0, rules.max_count)
            is_old = not results or math.abs(tonumber(number) - bucket) >= rules.buckets
            sums[kind] = sums[kind] + (is_old and 0 or results)
        elseif scope then
            is_old = accepted[scope] or not value or value <= now - rules.evidence_ttl
            if accepted[scope] then
                remember(scope, {recipient})
            elseif not is_old then
                add(scope, recipient, value)
            end
        elseif string.match(field, '^r%x+$') then
            is_old = not value or math.floor(value / rules.bucket) <= bucket - rules.buckets
            failing = failing + (is_old and 0 or 1)
        end
        if is_old then
            redis.call('HDEL', circuit, field)
        end
    end
    for scope, recipients in pairs(refused) do
        for _, recipient in ipairs(recipients) do
            if is_known(scope, recipient) then
                remember(scope, {recipient})
            else
                redis.call('HSET', circuit, add(scope, recipient, now), now)
            end
        end
    end
    limit_evidence(stored_later)
    return sums, failing, scopes
end

local function close(accepted)
    weigh(accepted, {})
    redis.call('DEL', circuit)
    if own_scope ~= '' then
        redis.call('ZREM', scopes_index, name)
    end
    return answer(CLOSED)
end

-- A circuit that evidence opened closes at an acceptance; any other one also at a rejection.
local function is_success(successes, refused, is_accepted)
    return successes > 0 and (is_accepted or (#refused == 0 and not doubted))
end

local function settle_probe(successes, failures, refused, failed, accepted)
    local is_new = remember(own_scope, refused)
    if failures > 0 or (is_new and not accepted[own_scope]) then
        note(failed)
        return answer(open(0))
    elseif is_success(successes, refused, accepted[own_scope]) then
        return close(accepted)
    end
    -- Nothing new, also if a recipient that was refused before was refused again.
    redis.call('HDEL', circuit, 'probe', 'probe_until')
    return answer(NOTHING)
end

local function settle_trial(successes, failures, refused, accepted)
    remember(own_scope, refused)
    if is_success(successes, refused, accepted[own_scope]) then
        return close(accepted)
    elseif failures > 0
        and add_to('trial_failures', failures) >= rules.min_recipients then
        -- The provider fails anyway: from now on, only the probe tests it.
        redis.call('HDEL', circuit, 'doubted')
    end
    return answer(NOTHING)
end

local function count(successes, failures, accepted, refused, failed)
    if successes > 0 then
        add_to('s' .. bucket, successes)
    end
    if failures > 0 then
        add_to('f' .. bucket, failures)
        note(failed)
    end
    local sums, failing, scopes = weigh(accepted, refused)
    local kept = (rules.buckets + 1) * rules.bucket
    expire_after(next(scopes) and rules.evidence_ttl or kept)
    local change, proven = NOTHING, {}
    local share = sums.f * 100 / (sums.f + sums.s)
    local is_failing = sums.f >= rules.min_failures and share >= rules.min_percent
    for scope, recipients in pairs(scopes) do
        if #recipients >= rules.min_recipients then
            for _, recipient in ipairs(recipients) do
                redis.call('HDEL', circuit, 'e' .. scope .. '/' .. recipient)
            end
            remember(scope, recipients)
            if scope == own_scope then
                change = open(0, true)
            else
                proven[#proven + 1] = scope
                proven[#proven + 1] = table.concat(recipients, ',')
            end
        end
    end
    if change == NOTHING and is_failing and failing >= rules.min_recipients then
        change = open(0)
    end
    local result = answer(change)
    for _, one in ipairs(proven) do
        result[#result + 1] = one
    end
    return result
end

if found[1] and open_until == 0 then
    -- Unreadable: it counts as closed.
    redis.call('HDEL', circuit, 'until', 'opened_at', 'openings', 'reason', 'probe', 'probe_until',
        'doubted', 'trial_failures')
end
redis.call('ZREMRANGEBYSCORE', index, '-inf', now - rules.listing_window)
if own_scope == '' then
    redis.call('ZADD', index, now, name)
else
    redis.call('ZADD', index, now, string.sub(name, 1, -2 - #own_scope))
    redis.call('ZADD', scopes_index, now, name)
    redis.call('ZREMRANGEBYRANK', scopes_index, 0, -1 - rules.max_scopes)
    redis.call('PEXPIRE', scopes_index, rules.listing_window)
end
if ARGV[6] == 'trip' then
    return trip(tonumber(ARGV[7]), ARGV[9] == '1')
elseif ARGV[6] == 'pause' then
    return pause(tonumber(ARGV[7]))
elseif ARGV[6] == 'share' then
    if ARGV[7] == leased then
        redis.call('HDEL', circuit, 'probe_until')
    end
    return answer(NOTHING)
end
local successes, failures, token = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local accepted, refused, failed = {}, {}, {}
for _, scope in ipairs(cjson.decode(ARGV[10])) do
    accepted[scope] = true
end
if ARGV[11] ~= '' then
    local evidence = cjson.decode(ARGV[11])
    refused, failed = evidence[1], evidence[2]
    remember_all(evidence[3])
    for scope, recipients in pairs(evidence[4]) do
        for _, recipient in ipairs(recipients) do
            redis.call('ZREM', known, scope .. '/' .. recipient)
        end
    end
end
if open_until == 0 then
    return count(successes, failures, accepted, refused, failed)
elseif token ~= '' and token == leased then
    return settle_probe(successes, failures, refused[own_scope] or {}, failed, accepted)
elseif doubted and token == 'trial:' .. doubted then
    return settle_trial(successes, failures, refused[own_scope] or {}, accepted)
end
remember_all(refused)
return answer(NOTHING)
