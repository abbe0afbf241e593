-- An account answered that it is too much: block it for so long, and send it half as much then.
-- Returns the new share in thousandths, or -1 if this tells nothing new.
--
-- KEYS: the bucket of rate_take.lua. ARGV: now, the rules as JSON, for how many milliseconds.

local bucket = KEYS[1]
local now, rules, pause = tonumber(ARGV[1]), cjson.decode(ARGV[2]), tonumber(ARGV[3])
local found = redis.call('HMGET', bucket, 'share', 'blocked_until', 'slowed_at')
local blocked_until, slowed_at = tonumber(found[2] or 0), tonumber(found[3])
local share, answer = tonumber(found[1] or 1), -1
if not slowed_at or now >= math.max(blocked_until, slowed_at + rules.one_event) then
    local steps = math.max(math.floor((now - blocked_until) / rules.step), 0)
    share = math.max(math.min(share + steps * rules.step_share, 1) / 2, rules.least_share)
    slowed_at, answer = now, math.floor(share * 1000)
end
blocked_until = math.max(blocked_until, now + pause)
redis.call('HSET', bucket, 'tokens', 0, 'at', blocked_until, 'share', share,
    'blocked_until', blocked_until, 'slowed_at', slowed_at)
local kept = blocked_until - now + rules.remembered
redis.call('PEXPIRE', bucket, math.max(redis.call('PTTL', bucket), kept))
return answer
