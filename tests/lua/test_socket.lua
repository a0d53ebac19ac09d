-- SPDX-License-Identifier: MIT
-- Dealers and routers of tasks, in one process.
local muster = require 'muster'
local sockets = require 'muster.socket'
local check = require 'check'

local function in_loop(body)
    local context = assert(muster.context_create { secret = 'the secret of this test' })
    local loop = assert(muster.loop(context))
    loop:run(function() body(loop) end)
    loop:close()
    assert(context:close(5e9))
end
local soon = 10e9

check.run {
    a_dealer_and_a_router_exchange_messages = function()
        in_loop(function(loop)
            local router = assert(sockets.router(loop, { address = 1 }))
            local dealer = assert(sockets.dealer(loop, { address = 2 }))
            local at = assert(router:bind 'tcp://127.0.0.1:0')
            loop:spawn(function() -- waits before there is a peer
                for _ = 1, 4 do
                    local request = assert(router:receive(soon))
                    assert(router:send(request:answer { type = request.type + 1 }, soon))
                end
            end)
            assert(dealer:connect(at))
            assert(dealer:wait_peers(1, soon))
            check.equal(dealer:next_event(soon).kind, 'connected')
            for i, frames in ipairs { {}, { '' }, { 'one', ('x'):rep(300000), 'three\0' }, { sockets.values('ids4b', 42, 0.5, 'layer', 7, 'raw') } } do
                assert(dealer:send({ type = 300 + i, target = 7, target_version = -3, frames = frames }, soon))
                local answer = assert(dealer:receive(soon))
                check.equal(answer.type, 301 + i)
                check.equal(answer.source, 1)
                check.equal(answer.target, 7)
                check.equal(answer.target_version, -3)
                check.equal(#answer.frames, #frames)
                for f, bytes in ipairs(frames) do check.equal(answer.frames[f] == bytes, true, 'frame ' .. f) end
                if i == 4 then
                    local whole, real, text, small, raw = answer:values(1, 'ids4b')
                    check.equal(whole .. ' ' .. real .. ' ' .. text .. ' ' .. small .. ' ' .. raw, '42 0.5 layer 7 raw')
                    check.says(select(2, answer:values(1, 'idd4b')), 'value 2')
                    check.equal(select(3, answer:values(2, 'i')), muster.E_NOT_FOUND)
                end
            end
            dealer:close(soon)
            check.equal(router:next_event(soon).kind, 'connected')
            local lost = router:next_event(soon)
            check.equal(lost.kind, 'lost')
            check.equal(lost.address, 2)
            check.equal(select(3, router:send({ destination = 2 }, soon)), muster.E_PEER)
            router:close()
            check.equal(select(3, router:receive()), muster.E_CLOSED)
        end)
    end,
    waits_end = function()
        in_loop(function(loop)
            local router = assert(sockets.router(loop, { address = 1 }))
            check.equal(select(3, router:receive(1e6)), muster.TIMEOUT)
            check.equal(select(3, router:wait_peers(1, 0)), muster.TIMEOUT)
            local status
            loop:spawn(function() status = select(3, router:receive()) end)
            router:close()
            check.equal(status, muster.E_CLOSED)
        end)
    end,
    what_cannot_be_delivered_comes_back = function()
        in_loop(function(loop)
            local router = assert(sockets.router(loop, { address = 1, max_unrouted_messages = 1 }))
            assert(router:send { destination = 99, type = 300, frames = { 'for nobody yet' } })
            local right, why, status = router:send { destination = 98, type = 301 }
            check.equal(right, nil)
            check.equal(status, muster.E_NOT_FOUND)
            check.says(why, 'no peer has the address 0x62')
            router:close()
            loop:wait(router.tag, loop:deadline(soon)) -- its completion is in the queue
            check.equal(#router.undelivered, 1)
            check.equal(router.undelivered[1].frames[1], 'for nobody yet')
            check.equal(router.undelivered[1].status, muster.E_CLOSED)
        end)
    end,
    wrong_arguments_are_errors = function()
        in_loop(function(loop)
            check.says(select(2, pcall(sockets.values, 'ii', 1)), 'the picture ii is for 2 values, not 1')
            check.says(select(2, pcall(sockets.values, 'z', 1)), 'no type of a value')
            check.equal(select(3, sockets.router(loop, { max_peers = 2 ^ 21 })), muster.E_ARG)
            local router = assert(sockets.router(loop))
            check.equal(select(3, router:bind 'nothing://x'), muster.E_NOT_FOUND)
            check.equal(select(3, router:connect 'no address'), muster.E_ADDRESS)
            router:close()
        end)
    end,
}
