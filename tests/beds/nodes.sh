# What beds of several nodes have in common; sourced. /tmp is the machine's, and but for Slurm's nodes /dev/shm, too.

# `system UNPACKED MPIPROBE`: /usr with what has been unpacked besides, mpiprobe in it, and an /etc of the bed's own.
system() {
    mount -t tmpfs -o mode=755 none /run
    mkdir /run/usr /run/usr-work /run/etc /run/etc-work /run/netns
    mkdir -p "$1/usr"
    mount -t overlay -o "lowerdir=$1/usr:/usr,upperdir=/run/usr,workdir=/run/usr-work" overlay /usr
    mount -t overlay -o "lowerdir=/etc,upperdir=/run/etc,workdir=/run/etc-work" overlay /etc
    touch /usr/bin/mpiprobe
    mount --bind "$2" /usr/bin/mpiprobe
}

# `alice NUMBER`: the one ordinary user.
alice() {
    echo "alice:x:$1:$1::/:/bin/sh" >>/etc/passwd
    echo "alice:x:$1:" >>/etc/group
}

# `nodes SCRIPT NAME...`: each is a set of namespaces with a network interface of its own, 10.77.0.1 and on, whose first process is the script.
nodes() {
    first=$1
    shift
    ip link add br0 type bridge
    ip link set br0 up
    echo '127.0.0.1 localhost' >/etc/hosts
    number=1
    for node; do
        echo "10.77.0.$number $node" >>/etc/hosts
        ip netns add $node
        ip link add eth0 netns $node type veth peer name p$number
        ip link set p$number master br0 up
        ip -n $node addr add 10.77.0.$number/24 dev eth0
        ip -n $node link set eth0 up
        ip -n $node link set lo up
        number=$((number + 1))
    done
    for node; do
        NODE=$node nsenter --net=/run/netns/$node \
            unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc bash "${0%/*}/$first" &
    done
}

# `answering NODE ADDRESS PORT`: waits until somebody listens there.
answering() {
    until nsenter --net=/run/netns/$1 bash -c "exec 3<>/dev/tcp/$2/$3" 2>/dev/null; do sleep 0.02; done
}
