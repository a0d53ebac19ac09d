#!/bin/sh
# SPDX-License-Identifier: MIT
# run_ranks.sh <mpiexec> <ranks> [--killed <n>] <program> [arguments...]: runs a program as the ranks of a job, more of them than there may
# be cores. --killed: some rank is killed; it passes if so many others say in a file that they are content.
# The program finds a folder of this run in MUSTER_TEST_FOLDER, and "@@" in its arguments becomes that folder.
mpiexec=$1 ranks=$2
shift 2
killed=
if [ "$1" = --killed ]; then
    killed=$2
    shift 2
fi
MUSTER_TEST_FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/ranks.XXXXXX") || exit 1
export MUSTER_TEST_FOLDER
trap 'rm -rf "$MUSTER_TEST_FOLDER"' EXIT
# Containers and CI run as root, and mpirun wants to be told that this is meant.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_LOG_LEVEL=error
count=$#
while [ "$count" -gt 0 ]; do
    [ "$1" = @@ ] && set -- "$@" "$MUSTER_TEST_FOLDER" || set -- "$@" "$1"
    shift
    count=$((count - 1))
done
if "$mpiexec" --version 2>&1 | grep -qi 'open.*mpi'; then
    "$mpiexec" --oversubscribe --bind-to none ${killed:+--enable-recovery} -n "$ranks" "$@"
    status=$?
elif [ -n "$killed" ]; then
    # MPICH's mpiexec (4.0) ends the others whatever it is told, so a shell stands between it and each rank, which
    # stays until all is over.
    "$mpiexec" -n "$ranks" sh -c 'trap "" USR1; "$@"; while [ ! -e "$MUSTER_TEST_FOLDER/over" ]; do
        [ "$(ls "$MUSTER_TEST_FOLDER" | grep -c -e "^passed" -e "^status")" -ge "$0" ] && : >"$MUSTER_TEST_FOLDER/over"
        sleep 0.1; done' "$killed" "$@"
    status=$?
else
    "$mpiexec" -n "$ranks" "$@"
    status=$?
fi
[ -n "$killed" ] || exit "$status"
if [ -e "$MUSTER_TEST_FOLDER/status" ]; then
    exit "$(cat "$MUSTER_TEST_FOLDER/status")"
fi
[ "$(ls "$MUSTER_TEST_FOLDER" | grep -c '^passed')" -eq "$killed" ]
