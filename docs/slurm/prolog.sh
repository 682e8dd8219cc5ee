#!/bin/sh
# Prolog= of slurm.conf, run by root on each node before a job: asks mpiprobe's node service how it does, which under systemd also starts
# it, so that what is observed unasked is observed from the job's beginning. A node without it is as good for the job as one with it.
if command -v mpiprobe >/dev/null && ! answer=$(timeout 5 mpiprobe doctor --service 2>&1); then
    logger -t mpiprobe-prolog -- "job ${SLURM_JOB_ID:-?}: the node service is not well: $answer" 2>/dev/null
fi
exit 0
