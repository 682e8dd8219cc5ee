# A cluster of Slurm's: `slurm.sh UNPACKED SOURCES MPIPROBE USER`. n0 has the controller; n1 and n2 compute, and have the node service. Each is
# a set of namespaces with a network interface of its own; /tmp and /dev/shm are the machine's.
set -eu
unpacked=$1 sources=$2 mpiprobe=$3 user=$4
mount -t tmpfs -o mode=755 none /run
mkdir /run/usr /run/usr-work /run/etc /run/etc-work /run/netns
mkdir -p "$unpacked/usr"
mount -t overlay -o "lowerdir=$unpacked/usr:/usr,upperdir=/run/usr,workdir=/run/usr-work" overlay /usr
mount -t overlay -o "lowerdir=/etc,upperdir=/run/etc,workdir=/run/etc-work" overlay /etc
# As Debian's alternatives have it.
for program in slurmctld slurmd slurmstepd; do
    [ -e /usr/sbin/$program ] || ln -s $program-wlm /usr/sbin/$program
done
touch /usr/bin/mpiprobe
mount --bind "$mpiprobe" /usr/bin/mpiprobe
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    plugin='CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n'
else
    plugin='CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n'
    mount -t tmpfs none /sys/fs/cgroup
    mkdir /sys/fs/cgroup/freezer
    mount -t cgroup -o freezer none /sys/fs/cgroup/freezer
fi

mkdir -p /etc/slurm /etc/munge /etc/mpiprobe
printf '127.0.0.1 localhost\n10.77.0.1 n0\n10.77.0.2 n1\n10.77.0.3 n2\n' >/etc/hosts
echo "alice:x:$user:$user::/:/bin/sh" >>/etc/passwd
echo "alice:x:$user:" >>/etc/group
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

ip link add br0 type bridge
ip link set br0 up
number=1
for node in n0 n1 n2; do
    ip netns add $node
    ip link add eth0 netns $node type veth peer name p$number
    ip link set p$number master br0 up
    ip -n $node addr add 10.77.0.$number/24 dev eth0
    ip -n $node link set eth0 up
    ip -n $node link set lo up
    number=$((number + 1))
done
for node in n0 n1 n2; do
    NODE=$node nsenter --net=/run/netns/$node \
        unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc bash "${0%/*}/slurm-node.sh" &
done
# Whoever asks before the controller is there waits for a second.
until nsenter --net=/run/netns/n0 bash -c 'exec 3<>/dev/tcp/10.77.0.1/6817' 2>/dev/null; do sleep 0.02; done
echo "bed: ready" >&2
wait
