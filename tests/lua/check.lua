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

-- Starts the calling script once for each rank, as `script rank url ...`; each has to say that it is content.
function check.members(count, ...)
    local muster = require 'muster'
    local secret = ('a secret of this test, %d %d'):format(os.time(), math.random(2 ^ 30))
    local context = assert(muster.context_create { secret = secret })
    local server = assert(muster.store_server_open(context, 'tcp://127.0.0.1:0'))
    local more, pipes = table.concat({ assert(server:address()), ... }, ' '), {}
    for rank = 0, count - 1 do
        pipes[rank] = assert(io.popen(("MUSTER_TEST_SECRET='%s' timeout 60 luajit %s %d %s 2>&1"):format(secret, arg[0], rank, more)))
    end
    for rank = 0, count - 1 do
        local said = pipes[rank]:read('*a')
        pipes[rank]:close()
        check.equal(said, ('rank %d is content\n'):format(rank))
    end
    server:close(1e9)
    assert(context:close(1e9))
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
