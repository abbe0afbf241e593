-- Apply a rate-limit response: block the account for a pause, and halve its rate.
-- Return the new share in thousandths, or -1 if the rate was already halved for this.
--
-- KEYS: the bucket of rate_take.lua. ARGV: now, the rules as JSON, the pause in milliseconds,
-- and 1 if the response may concern its recipient alone, or 0: then the pause holds no critical
-- messages, until "doubted_until".

local bucket = KEYS[1]
local is_doubted = ARGV[4] == '1'
local now, rules, pause = tonumber(ARGV[1]), cjson.decode(ARGV[2]), tonumber(ARGV[3])
local found = redis.call('HMGET', bucket, 'share', 'blocked_until', 'slowed_at', 'doubted_until',
    'tokens')
local latest = now + rules.longest_wait
local blocked_until = stored_number(found[2], 0, latest) or 0
local slowed_at = stored_number(found[3], 0, latest)
local share, answer = stored_number(found[1], 0, 1) or 1, -1
if not slowed_at or now >= math.max(blocked_until, slowed_at + rules.throttle_debounce) then
    local steps = math.max(math.floor((now - blocked_until) / rules.restore_interval), 0)
    share = math.min(share + steps * rules.restore_share, 1)
    local least = is_doubted and math.min(share, rules.min_doubted_share) or rules.min_share
    share = math.max(share / 2, least)
    slowed_at, answer = now, math.floor(share * 1000)
    if is_doubted then
        blocked_until = math.max(blocked_until, now)
    end
end
local doubted_until = stored_number(found[4], 0, latest) or 0
if is_doubted then
    doubted_until = math.max(doubted_until, now + pause)
    redis.call('HSET', bucket, 'share', share, 'blocked_until', blocked_until,
        'slowed_at', slowed_at, 'doubted_until', doubted_until)
else
    blocked_until = math.max(blocked_until, now + pause)
    -- What critical messages have overdrawn is still to be repaid.
    local tokens = math.min(stored_number(found[5], -math.huge, math.huge) or 0, 0)
    redis.call('HSET', bucket, 'tokens', tokens, 'at', blocked_until, 'share', share,
        'blocked_until', blocked_until, 'slowed_at', slowed_at)
end
local kept = math.max(blocked_until, doubted_until) - now + rules.idle_ttl
redis.call('PEXPIRE', bucket, math.max(redis.call('PTTL', bucket), kept))
return answer
