-- Return a stored value as a number from "least" to "most", or nil. Whatever else is stored, such as
-- 'nan', text, or the error of a key of another type, counts as absent.
local function stored_number(value, least, most)
    local number = type(value) == 'string' and tonumber(value) or nil
    if number and number >= least and number <= most then
        return number
    end
    return nil
end
