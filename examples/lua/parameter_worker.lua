-- SPDX-License-Identifier: MIT
-- A worker of examples/c/parameter_server.c in Lua: it gets parameters, computes the sums of its share of the points, and
-- sends them back. Worker 1 kills itself after 200 steps.
local ffi = require 'ffi'
local muster = require 'muster'
local sockets = require 'muster.socket'

ffi.cdef 'int kill(int process, int signal); int getpid(void);'
local points, hidden, dies_at = 900, 12, 200
local parameters = 4 * hidden + 1
local number = tonumber(os.getenv 'WORKER')

-- Point i of two half moons, as in moons.h: its coordinates and its class.
local function point(i)
    local state = (77 + i * 2654435761) % 4294967296
    local function uniform()
        state = (state * 1664525 + 1013904223) % 4294967296
        return math.floor(state / 256) / 16777216
    end
    local class = i % 2
    uniform()
    local angle = 3.14159265 * uniform()
    local x = (class == 1 and 1 - math.cos(angle) or math.cos(angle)) + 0.2 * (uniform() - 0.5)
    local y = (class == 1 and 0.5 - math.sin(angle) or math.sin(angle)) + 0.2 * (uniform() - 0.5)
    return x, y, class
end

-- The sums for the points first, first + stride, ...: gradient, loss, and the number of right answers.
local function evaluate(value, first, stride)
    local sums, inner = ffi.new('double[?]', parameters + 2), ffi.new('double[?]', hidden)
    for i = first, points - 1, stride do
        local x, y, class = point(i)
        local output = value[4 * hidden]
        for h = 0, hidden - 1 do
            inner[h] = math.tanh(value[4 * h] * x + value[4 * h + 1] * y + value[4 * h + 2])
            output = output + value[4 * h + 3] * inner[h]
        end
        local probability = 1 / (1 + math.exp(-output))
        local wrong = probability - class
        for h = 0, hidden - 1 do
            local back = wrong * value[4 * h + 3] * (1 - inner[h] * inner[h])
            sums[4 * h] = sums[4 * h] + back * x
            sums[4 * h + 1] = sums[4 * h + 1] + back * y
            sums[4 * h + 2] = sums[4 * h + 2] + back
            sums[4 * h + 3] = sums[4 * h + 3] + wrong * inner[h]
        end
        sums[4 * hidden] = sums[4 * hidden] + wrong
        sums[parameters] = sums[parameters] - math.log(class == 1 and probability or 1 - probability)
        if (probability > 0.5) == (class == 1) then sums[parameters + 1] = sums[parameters + 1] + 1 end
    end
    return ffi.string(sums, 8 * (parameters + 2))
end

local context = assert(muster.context_create()) -- with the secret of the environment
local loop = assert(muster.loop(context))
loop:run(function()
    local dealer = assert(sockets.dealer(loop, { address = 10 + number }))
    assert(dealer:connect(os.getenv 'PARAMETER_SERVER'))
    assert(dealer:send { type = muster.MESSAGE_GET, destination = 1, frames = { sockets.values('ii', 0, 0), '' } })
    while true do
        local message = assert(dealer:receive(60e9))
        if message.type == muster.MESSAGE_STOP then break end
        local share, shares = assert(message:values(1, 'ii'))
        local model = ffi.cast('const double *', message.frames[2]) -- the step, then the parameters
        if number == 1 and message.target_version == dies_at then ffi.C.kill(ffi.C.getpid(), 9) end
        assert(dealer:send(message:answer { type = muster.MESSAGE_UPDATE,
            frames = { message.frames[1], evaluate(model + 1, share, shares) } }))
    end
    dealer:close(1e9)
end)
loop:close()
assert(context:close(1e9))
