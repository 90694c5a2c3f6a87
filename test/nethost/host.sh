# Runs as the first process of a host's namespaces and becomes its init.
# Arguments: the host's directory on this machine, its name, its address.
# Input: one line when the cable is laid, then nothing until end of file, which
# ends the host. Output: one line when the host is up.
set -eu
umask 022
dir=$1 name=$2 address=$3

# First of all: nothing mounted here may show outside.
mount --make-rprivate /
read -r _

ip -batch - <<-END
	link set lo up
	addr add $address/24 dev eth0
	link set eth0 up
END
echo "$name" >/proc/sys/kernel/hostname

# The root: this machine's file system below a layer in memory, without the top
# level directories that no distribution has.
mount -t tmpfs -o mode=0755 tmpfs "$dir/layer"
cd "$dir/layer"
mkdir upper work root
for path in /* /.[!.]*; do
	case ${path#/} in
	bin | boot | dev | etc | home | lib* | media | mnt | opt | proc | root | run | sbin | srv | sys | tmp | usr | var) ;;
	*) [ ! -e "$path" ] || mknod "upper/${path#/}" c 0 0 ;; # a whiteout
	esac
done
mount -t overlay -o "lowerdir=/,upperdir=$dir/layer/upper,workdir=$dir/layer/work" overlay root
cd root

# Empty what is this machine's own, mount what a kernel gives, then lay the
# host's files over it. One mount(8) for all: processes are what takes time here.
root=$dir/layer/root
{
	for path in root home tmp run var/tmp media mnt srv dev etc/sudoers.d etc/ssl/private etc/exocomp var/lib/exocomp; do
		[ ! -d "$path" ] || echo "tmpfs $root/$path tmpfs mode=0755"
	done
	echo "devpts $root/dev/pts devpts newinstance,ptmxmode=0666,mode=0620,gid=5,X-mount.mkdir"
	echo "tmpfs $root/dev/shm tmpfs mode=1777,X-mount.mkdir"
	echo "proc $root/proc proc defaults"
	echo "sysfs $root/sys sysfs ro"
} >"$dir/fstab"
mount --all --fstab "$dir/fstab"
rm -f etc/ssh/ssh_host_* etc/ssh/sshd_config.d/*
cp -a --remove-destination "$dir/stage/." .

pivot_root . run/machine
cd /
umount -l run/machine
rmdir run/machine

# The init: bash reaps what is orphaned, and read returns when the owner is gone.
echo up
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c 'trap "" HUP INT TERM; while read -r _; do :; done' "$0" "$dir" >/dev/null 2>&1
