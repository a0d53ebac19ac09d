-- SPDX-License-Identifier: MIT
-- A worker in Lua; worker.c says what it does.
local ffi = require 'ffi'

require('muster.cluster').work(function(cluster)
    local size = 2 ^ 20
    local function ask(member)
        local pattern = ffi.new('uint8_t[?]', size)
        for i = 0, size - 1 do pattern[i] = (i * 31 + cluster:self()) % 256 end
        local sent = ffi.string(pattern, size)
        local stream, why = cluster:dial(member, 'echo')
        if not stream then return nil, why end
        assert(stream:write(sent))
        stream:finish()
        local back
        back, why = stream:read(size)
        stream:close()
        if not back then return nil, why end
        return back == sent, 'other bytes came back'
    end
    local heard = 'nothing\n'
    function cluster.on_broadcast(bytes)
        local sum = 0
        for i = 1, #bytes do sum = sum + bytes:byte(i) end
        heard = ('%d %d\n'):format(#bytes, sum % 2 ^ 32)
    end
    function cluster.on_stream(stream, _, label)
        local member = tonumber(label:match '^pair:(%d+)$')
        if label == 'heard' then
            stream:write(heard)
        elseif member then
            local right, why = ask(member)
            stream:write(right and 'ok\n' or 'bad: ' .. tostring(why) .. '\n')
        else
            repeat
                local piece = stream:read_some()
                if piece then stream:write(piece) end
            until not piece
        end
        stream:finish()
        stream:close()
    end
end)
