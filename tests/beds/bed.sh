#!/bin/bash
# A test bed: `bed.sh SCRIPT ARGUMENTS` runs the script as the first process of namespaces of its own, in cgroups of its own. All of it ends
# when the script does, or when standard input does: with whoever has started this, however that ends.
set -u
own=mpiprobe-bed-$$
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*/; do
    # There are hierarchies that a new group takes nobody of (cpuset, without processors).
    [ -w "$hierarchy/cgroup.procs" ] && mkdir "$hierarchy/$own" && { echo $$ >"$hierarchy/$own/cgroup.procs"; } 2>/dev/null
done
exec 3<&0
unshare --mount --net --uts --ipc --cgroup --pid --fork --kill-child --mount-proc bash "$@" </dev/null 3<&- &
bed=$!
cat <&3 >/dev/null &
wait -n
# With a namespace's first process all others end, and are gone when it is.
{ kill -KILL $! $(cat /proc/$bed/task/$bed/children || echo $bed); } 2>/dev/null
wait
exec 2>/dev/null
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*/; do
    [ -d "$hierarchy/$own" ] || continue
    echo $$ >"$hierarchy/cgroup.procs"
    find "$hierarchy/$own" -depth -type d -exec rmdir {} +
done
