# SPDX-License-Identifier: MIT
# The status with which a call failed, or MUSTER_OK.
status_of(f) =
    try
        f()
        Muster.LowLevel.MUSTER_OK
    catch problem
        problem isa Muster.MusterError || rethrow()
        problem.status
    end
