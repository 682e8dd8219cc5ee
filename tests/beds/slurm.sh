# A cluster of Slurm's: `slurm.sh UNPACKED SOURCES MPIPROBE USER`. n0 has the controller; n1 and n2 compute, and have the node service.
set -eu
unpacked=$1 sources=$2 mpiprobe=$3 user=$4
. "${0%/*}/nodes.sh"
system "$unpacked" "$mpiprobe"
# As Debian's alternatives have it.
for program in slurmctld slurmd slurmstepd; do
    [ -e /usr/sbin/$program ] || ln -s $program-wlm /usr/sbin/$program
done
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    plugin='CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n'
else
    plugin='CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n'
    mount -t tmpfs none /sys/fs/cgroup
    mkdir /sys/fs/cgroup/freezer
    mount -t cgroup -o freezer none /sys/fs/cgroup/freezer
fi

mkdir -p /etc/slurm /etc/munge /etc/mpiprobe
alice "$user"
head -c 1024 /dev/urandom >/etc/munge/key
chmod 400 /etc/munge/key
printf "$plugin" >/etc/slurm/cgroup.conf
# Nodes share /tmp, where what PMIx puts there has the same name on all.
echo 'PMIxCliTmpDirBase=/run' >/etc/slurm/mpi.conf
cat >/etc/slurm/slurm.conf <<X
ClusterName=bed
SlurmctldHost=n0
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/cgroup
JobAcctGatherType=jobacct_gather/none
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
Prolog=$sources/docs/slurm/prolog.sh
Epilog=$sources/docs/slurm/epilog.sh
NodeName=n[1-2] CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=1000
PartitionName=all Nodes=n[1-2] Default=YES State=UP OverSubscribe=FORCE
X
cat >/etc/mpiprobe/service.toml <<X
user = "nobody"
[jobs]
observe = true
look-every = "100ms"
interval = "100ms"
max-overhead = "off"
[metrics]
address = "127.0.0.1:9464"
[summaries]
file = "/var/log/mpiprobe/jobs.jsonl"
X
chmod 644 /etc/mpiprobe/service.toml

nodes slurm-node.sh n0 n1 n2
# Whoever asks before the controller is there waits for a second.
answering n0 10.77.0.1 6817
echo "bed: ready" >&2
wait
