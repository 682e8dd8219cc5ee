# The first process of a node of ssh.sh's, whose name is in $NODE.
set -eu
hostname "$NODE"
for folder in /run /var/spool /var/log; do
    mount -t tmpfs -o mode=755 none $folder
done
mkdir /run/sshd
mpiprobe service &
until [ -S /run/mpiprobe/mpiprobe.sock ]; do sleep 0.02; done
/usr/sbin/sshd -D -e &
wait
