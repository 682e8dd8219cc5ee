#!/bin/sh
# Epilog= of slurm.conf, run by root on each node after a job: gives the job's user what the node service has written of it (`[summaries]` in
# /etc/mpiprobe/service.toml), as /var/log/mpiprobe-jobs/JOB.NODE.jsonl.
summaries=/var/log/mpiprobe/jobs.jsonl
folder=/var/log/mpiprobe-jobs
[ -n "$SLURM_JOB_ID" ] && [ -n "$SLURM_JOB_UID" ] && [ -r "$summaries" ] || exit 0
umask 022
mkdir -p "$folder"
# The service notices the end of a job at its next look.
for try in 1 2 3 4 5 6; do
    if lines=$(tail -n 1000 "$summaries" | grep -E "\"slurm_job\":\"$SLURM_JOB_ID[.\"]"); then
        file=$folder/$SLURM_JOB_ID.${SLURMD_NODENAME:-$(hostname)}.jsonl
        (umask 077 && printf '%s\n' "$lines" >"$file") && chown "$SLURM_JOB_UID" "$file"
        break
    fi
    sleep 0.5
done
exit 0
