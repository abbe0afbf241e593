-- Take tokens of an account; return how many were granted, and the milliseconds until the next.
--
-- A bucket is a hash: "tokens" at the time "at", and "debt", which the next tokens repay and which
-- holds no critical message; after a rate-limit response also "share", the throttled share of the
-- rate, "blocked_until", when it starts to recover, and "doubted_until", until when only critical
-- messages are sent. TokenBucket in rate_limiter.py computes the same:
-- keep them equal, to the order of each sum.
--
-- KEYS: the bucket. ARGV: now, the rules as JSON, the count, the rate or '', the burst, 1 if it may
-- overdraw the bucket, or 0, and how many the first message needs, the first two, and so on, or '' if
-- each needs one: the last that gets any gets all, as a debt.

local bucket = KEYS[1]
local now, rules, count = tonumber(ARGV[1]), cjson.decode(ARGV[2]), tonumber(ARGV[3])
local rate, burst = tonumber(ARGV[4]), tonumber(ARGV[5])
local found = redis.call('HMGET', bucket, 'tokens', 'at', 'share', 'blocked_until',
    'doubted_until', 'debt')
local latest = now + rules.longest_wait
local blocked_until = stored_number(found[4], 0, latest) or 0
local doubted_until = stored_number(found[5], 0, latest) or 0
local is_critical = ARGV[6] == '1'
local waits_until = is_critical and blocked_until or math.max(blocked_until, doubted_until)
if now < waits_until then
    return {0, waits_until - now}
elseif not rate then
    return {count, 0}
end

local function share(at)
    local steps = math.max(math.floor((at - blocked_until) / rules.restore_interval), 0)
    return math.min((stored_number(found[3], 0, 1) or 1) + steps * rules.restore_share, 1)
end

local at = stored_number(found[2], 0, now + rules.max_skew) or now
local capacity = math.max(burst * share(now), 1)
local gained = math.max(now - at, 0) / 1000 * rate * share(at)
local stored = stored_number(found[1], -burst - 1 - rules.max_debt, math.huge) or capacity
local debt = stored_number(found[6], 0, rules.max_debt) or 0
local paid = math.min(debt, math.max(stored + gained, 0))
debt = debt - paid
local tokens = math.min(stored + gained - paid, capacity)
local overdraft = tonumber(ARGV[6]) * math.max(capacity * rules.overdraft_share, 1)
local granted = math.min(count, math.max(math.floor(tokens + overdraft), 0))
local whole = granted
if granted > 0 and granted < count then
    for needed in string.gmatch(ARGV[7], '%d+') do
        if tonumber(needed) >= granted then
            whole = math.min(tonumber(needed), granted + rules.max_debt)
            break
        end
    end
end
if is_critical then
    tokens = tokens - whole
else
    tokens, debt = tokens - granted, debt + (whole - granted)
end
redis.call('HSET', bucket, 'tokens', tokens, 'debt', debt, 'at', math.max(now, at))
local kept = math.ceil((burst + math.max(-tokens, 0) + debt) / rate * 1000) + rules.idle_ttl
redis.call('PEXPIRE', bucket, math.max(redis.call('PTTL', bucket), kept))
local wait, left = 0, tokens + overdraft - (is_critical and 0 or debt)
if left < 1 then
    wait = math.min(math.ceil((1 - left) * 1000 / (rate * share(now))), rules.max_wait)
end
return {whole, wait}
