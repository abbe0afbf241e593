-- Free a draw's slot, unless another draw has been given it. KEYS: the slot; ARGV: the draw's number.
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
return 1
