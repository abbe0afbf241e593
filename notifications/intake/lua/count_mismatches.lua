-- Adds to the counts of fields, of which a key has at most ARGV[2], and lasts ARGV[1] seconds.
-- Then each field and what is added to it.
local is_new = redis.call("EXISTS", KEYS[1]) == 0
local fields = redis.call("HLEN", KEYS[1])
for index = 3, #ARGV, 2 do
  local is_known = redis.call("HEXISTS", KEYS[1], ARGV[index]) == 1
  if is_known or fields < tonumber(ARGV[2]) then
    redis.call("HINCRBY", KEYS[1], ARGV[index], ARGV[index + 1])
    if not is_known then
      fields = fields + 1
    end
  end
end
if is_new then
  redis.call("EXPIRE", KEYS[1], ARGV[1])
end
