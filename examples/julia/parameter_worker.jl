# SPDX-License-Identifier: MIT
# A worker of examples/c/parameter_server.c in Julia: it gets parameters, computes the sums of its share of the points, and
# sends them back.
using Muster

const POINTS, HIDDEN = 900, 12
const PARAMETERS = 4HIDDEN + 1

# Point i of two half moons, as in moons.h: its coordinates and its class.
function point(i)
    state = UInt32(77) + UInt32(i) * UInt32(2654435761)
    uniform() = (state = state * UInt32(1664525) + UInt32(1013904223); (state >> 8) / 16777216)
    class = i % 2
    uniform()
    angle = 3.14159265 * uniform()
    x = (class == 1 ? 1 - cos(angle) : cos(angle)) + 0.2 * (uniform() - 0.5)
    y = (class == 1 ? 0.5 - sin(angle) : sin(angle)) + 0.2 * (uniform() - 0.5)
    return x, y, class
end
const ALL_POINTS = [point(i) for i in 0:(POINTS - 1)]

# The sums for the points first, first + stride, ...: gradient, loss, and the number of right answers.
function evaluate(value, first, stride)
    sums, inner = zeros(PARAMETERS + 2), zeros(HIDDEN)
    for i in first:stride:(POINTS - 1)
        x, y, class = ALL_POINTS[i + 1]
        output = value[4HIDDEN + 1]
        for h in 1:HIDDEN
            a, b, c, d = value[4h - 3], value[4h - 2], value[4h - 1], value[4h]
            inner[h] = tanh(a * x + b * y + c)
            output += d * inner[h]
        end
        probability = 1 / (1 + exp(-output))
        wrong = probability - class
        for h in 1:HIDDEN
            back = wrong * value[4h] * (1 - inner[h] * inner[h])
            sums[4h - 3] += back * x
            sums[4h - 2] += back * y
            sums[4h - 1] += back
            sums[4h] += wrong * inner[h]
        end
        sums[PARAMETERS] += wrong
        sums[PARAMETERS + 1] -= log(class == 1 ? probability : 1 - probability)
        sums[PARAMETERS + 2] += (probability > 0.5) == (class == 1)
    end
    return sums
end

function work(number, server)
    dealer = Muster.Dealer(address = 10 + number)
    Muster.connect!(dealer, server)
    pair(a, b) = vcat(UInt8[0x89, UInt8('M'), UInt8('V'), UInt8('1')], reinterpret(UInt8, [UInt32(2)]), codeunits("ii"),
                      reinterpret(UInt8, Int32[a, b])) # a format frame of two numbers
    Muster.send!(dealer, Muster.Message(Muster.LowLevel.MUSTER_MESSAGE_GET; destination = 1, frames = (pair(0, 0), "")))
    while true
        message = Muster.receive!(dealer; timeout = 60)
        message.type == Muster.LowLevel.MUSTER_MESSAGE_STOP && break
        share, shares = reinterpret(Int32, message.frames[1][(end - 7):end])
        value = Muster.array(message, 2, Float64)[2:(PARAMETERS + 1)] # after the step
        Muster.send!(dealer, Muster.answer(message; type = Muster.LowLevel.MUSTER_MESSAGE_UPDATE,
            frames = (message.frames[1], evaluate(value, share, shares))))
    end
    close(dealer)
end

work(parse(Int, ENV["WORKER"]), ENV["PARAMETER_SERVER"])
