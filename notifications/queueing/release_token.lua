-- Release a pull's slot, unless a later pull holds it. KEYS: the slot; ARGV: the token's nonce.
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
return 1
