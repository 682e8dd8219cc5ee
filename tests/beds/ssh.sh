# Nodes that are reached by ssh: `ssh.sh UNPACKED MPIPROBE USER`. n1, n2 and n3 have the node service, and the same user.
set -eu
. "${0%/*}/nodes.sh"
system "$1" "$2"
alice "$3"
echo 'sshd:x:64:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
mkdir -p /etc/ssh
rm -rf /etc/ssh/ssh_config.d
for key in host alice; do
    rm -f /etc/ssh/$key /etc/ssh/$key.pub
    ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/$key
done
chown "$3" /etc/ssh/alice
cat >/etc/ssh/ssh_config <<X
Host *
    IdentityFile /etc/ssh/alice
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
X
cat >/etc/ssh/sshd_config <<X
HostKey /etc/ssh/host
AuthorizedKeysFile /etc/ssh/alice.pub
StrictModes no
UsePAM no
PidFile none
X
nodes ssh-node.sh n1 n2 n3
for number in 1 2 3; do
    answering n$number 10.77.0.$number 22
done
echo "bed: ready" >&2
wait
