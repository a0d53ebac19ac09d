// SPDX-License-Identifier: MIT
#pragma once
// Checks before the first call of MPI: the MPI that this file was built with, the one that the process has loaded, and
// the launcher of the process. The two families, Open MPI and MPICH, are incompatible, and abort the process on a
// mismatch.
#include <muster/plugin.h>

namespace mpi {

// Returns MUSTER_OK if MPI may be called. `out_initialised`: the host has initialised it already.
muster_status check_mpi(bool &out_initialised, muster_error *error);

// The launcher was asked to keep the job running when a rank dies.
bool job_survives_deaths();

// Initialises MPI without leaving signal handlers behind; *out_level is what it provides.
muster_status initialise(int &out_level, muster_error *error);

// Does MPI, once initialise() was called, copy large messages through shared pages?
bool copies_through_pages();

} // namespace mpi
