# The first process of a node of slurm.sh's, whose name is in $NODE.
set -eu
hostname "$NODE"
for folder in /run /var/spool /var/log; do
    mount -t tmpfs -o mode=755 none $folder
done
# MPICH names its shared memory after job and step, whose numbers each cluster begins anew.
mount -t tmpfs -o mode=1777 none /dev/shm
mkdir -p /run/munge /var/spool/slurmd /var/spool/slurmctld /var/log/mpiprobe
chown nobody /var/log/mpiprobe
munged --force --key-file=/etc/munge/key --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/pid \
    --log-file=/run/munge/log --seed-file=/run/munge/seed
case $NODE in
n0) slurmctld -D & ;;
*)
    mpiprobe service &
    slurmd -D -N "$NODE" &
    ;;
esac
wait
