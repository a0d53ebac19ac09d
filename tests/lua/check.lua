-- SPDX-License-Identifier: MIT
-- Tests as functions by their promises: check.run { name = function() ... end }
local check = {}

function check.equal(is, should, what)
    if is ~= should then
        error(('%s is %s, not %s'):format(what or 'it', tostring(is), tostring(should)), 2)
    end
end

function check.says(text, part)
    if not tostring(text):find(part, 1, true) then error(("'%s' does not say '%s'"):format(tostring(text), part), 2) end
end

function check.lines(command)
    local pipe = assert(io.popen(command))
    local lines = {}
    for line in pipe:lines() do lines[#lines + 1] = line end
    pipe:close()
    return lines
end

function check.run(tests)
    local names, failed = {}, 0
    for name in pairs(tests) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
        local right, why = xpcall(tests[name], debug.traceback)
        io.write(right and 'ok ' or 'FAILED ', name, right and '' or '\n  ' .. why, '\n')
        if not right then failed = failed + 1 end
    end
    io.write(('%d passed, %d failed\n'):format(#names - failed, failed))
    os.exit(failed == 0 and 0 or 1)
end

return check
