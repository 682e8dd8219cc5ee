# Boots systemd with the node service's units on a copy-on-write view of this machine's root: `systemd.sh SOURCES MPIPROBE USER`. /tmp and
# /dev/shm are the machine's.
set -eu
sources=$1 mpiprobe=$2 user=$3
mount -t tmpfs none /mnt
mkdir /mnt/changes /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/changes,workdir=/mnt/work overlay /mnt/root
cd /mnt/root
mount -t proc none proc
mount -t sysfs none sys
mount -t cgroup2 none sys/fs/cgroup
mount --rbind /dev dev
mount --bind /tmp tmp
mount -t tmpfs -o mode=755 none run

# Nothing of what this machine starts, and nothing that concerns more than namespaces.
rm -rf etc/systemd/system/*.wants usr/lib/systemd/system/*.wants etc/mpiprobe
for unit in binfmt journal-flush logind modules-load remount-fs resolved sysctl timesyncd tmpfiles-setup tmpfiles-setup-dev udevd; do
    ln -sf /dev/null etc/systemd/system/systemd-$unit.service
done
mkdir -p etc/systemd/system/sockets.target.wants
ln -s /lib/systemd/system/systemd-journald.socket etc/systemd/system/sockets.target.wants/
mkdir -p etc/systemd/journald.conf.d
printf '[Journal]\nReadKMsg=no\nStorage=volatile\n' >etc/systemd/journald.conf.d/bed.conf

# As the package lays it.
touch usr/bin/mpiprobe
mount --bind "$mpiprobe" usr/bin/mpiprobe
cp "$sources"/daemon/systemd/*.service "$sources"/daemon/systemd/*.socket usr/lib/systemd/system/
cp "$sources"/daemon/systemd/mpiprobe.sysusers usr/lib/sysusers.d/mpiprobe.conf
chroot . systemd-sysusers mpiprobe.conf
echo "alice:x:$user:$user::/:/bin/sh" >>etc/passwd
echo "alice:x:$user:" >>etc/group

mkdir run/old
pivot_root . run/old
umount -l /run/old
echo "bed: ready" >&2
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal
