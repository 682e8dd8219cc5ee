#!/bin/sh
# Epilog= of slurm.conf, run by root on each node after a job: gives the job's user what the node service has written of it (`[summaries]` in
# /etc/mpiprobe/service.toml), as /var/log/mpiprobe-jobs/JOB.NODE.jsonl. The service writes a line for each step as soon as it has noticed its
# end, which takes longer on a busy node: that is waited for in the background, and no job waits for it.
summaries=/var/log/mpiprobe/jobs.jsonl
folder=/var/log/mpiprobe-jobs
[ -n "$SLURM_JOB_ID" ] && [ -n "$SLURM_JOB_UID" ] && [ -d "${summaries%/*}" ] || exit 0
if [ "$1" != later ]; then
    # Slurm ends what is in the script's own session: this returns when the other one has left it, and has closed its output.
    : "$(setsid --fork sh "$0" later </dev/null 2>/dev/null)"
    exit 0
fi
exec >/dev/null
umask 022
mkdir -p "$folder"
file=$folder/$SLURM_JOB_ID.${SLURMD_NODENAME:-$(hostname)}.jsonl
given=
for seconds in 0 1 1 2 4 8 16 32; do
    sleep "$seconds"
    lines=$(tail -n 1000 "$summaries" 2>/dev/null | grep -E "\"slurm_job\":\"$SLURM_JOB_ID[.\"]")
    if [ "$lines" != "$given" ]; then
        (umask 077 && printf '%s\n' "$lines" >"$file.new") && chown "$SLURM_JOB_UID" "$file.new" && mv "$file.new" "$file"
        given=$lines
    fi
done
