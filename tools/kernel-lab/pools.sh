#!/bin/busybox sh
# The guest of tools/kernel-lab.py --zfs: carries out the lines of /scenario and prints each line with the
# sums of the I/O that OpenZFS sent to the members.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin LD_LIBRARY_PATH=/lib
mkdir -p /dev /proc /sys /run /tmp /etc
mount -t devtmpfs none /dev; mount -t proc none /proc; mount -t sysfs none /sys
mount -t tracefs none /sys/kernel/tracing; mount -t tmpfs none /run
touch /etc/mtab
. /settings
for module in $(cat /modules.order); do
	case $module in
	null_blk*) insmod /lib/modules/$module $NULL_BLK ;;
	# The memory of a guest is small, and each pool has little data.
	zfs*) insmod /lib/modules/$module zfs_arc_max=600000000 zfs_arc_min=100000000 ;;
	*) insmod /lib/modules/$module ;;
	esac || echo "FAIL: insmod $module"
done
T=/sys/kernel/tracing
echo 65536 > $T/buffer_size_kb
echo 1 > $T/events/block/block_bio_queue/enable
echo 0 > $T/tracing_on
for queue in /sys/block/nullb*/queue; do
	echo $ROTATIONAL > $queue/rotational; echo $ELEVATOR > $queue/scheduler
	cat $queue/max_hw_sectors_kb > $queue/max_sectors_kb
	# The kernel's throttle of background writes would hold back the pool's writes.
	echo 0 > $queue/wbt_lat_usec
done
MAJOR=$(cut -d: -f1 /sys/block/nullb0/dev) SECTORS=$(cat /sys/block/nullb0/size)
# OpenZFS 2.3 cuts an I/O into bios of this many sectors.
LONGEST=$(($(cat /sys/block/nullb0/queue/max_sectors_kb) * 2))
echo "kernel: $(uname -r), OpenZFS $(cat /sys/module/zfs/version)"

quietly() { "$@" > /tmp/log 2>&1 || { echo "FAIL: $*"; cat /tmp/log; }; }
# A bio that continues a bio of the largest length belongs to the same I/O of at most 1 MiB.
# Labels are four pieces of 256 KiB: two in front of the data, which begins at 4 MiB, and two at the end.
sums() {
	awk -v major=$MAJOR -v end=$((SECTORS - 1024)) -v longest=$LONGEST '
	/tracing_mark_write: BEGIN/ { begun = 1 }
	/block_bio_queue:/ {
		split(substr($0, index($0, "block_bio_queue:") + 17), f, " "); split(f[1], device, ",")
		if (!begun || device[1] != major || f[5] + 0 == 0) next
		kind = substr(f[2], 1, 1)
		if (kind == "F") kind = substr(f[2], 2, 1)
		if (f[3] < 8192 || f[3] >= end) { labels[kind]++; next }
		is_rest = f[3] == next_of[device[2]] && kind == kind_of[device[2]] && of_io[device[2]] + f[5] <= 2048
		next_of[device[2]] = f[5] == longest ? f[3] + f[5] : -1; kind_of[device[2]] = kind
		of_io[device[2]] = f[5] + (is_rest ? of_io[device[2]] : 0)
		n[kind] += !is_rest; kib[kind] += f[5] / 2; each[device[2] kind] += !is_rest; bytes[device[2] kind] += f[5] / 2
	}
	END {
		printf " reads=%d read_kib=%d writes=%d written_kib=%d labels=%d/%d members=", n["R"], kib["R"], n["W"], kib["W"], labels["R"], labels["W"]
		for (m = 0; m < 32; m++) if ((m "R") in each || (m "W") in each) printf "%s%d:%d/%d+%d/%d", (m ? "," : ""), m, each[m "R"], bytes[m "R"], each[m "W"], bytes[m "W"]
		printf "\n"
	}' $T/trace
}
traced() { echo > $T/trace; echo 1 > $T/tracing_on; "$@"; quietly zpool sync; usleep 100000; echo 0 > $T/tracing_on; }
# The volume stays open: its last close would write the intent log.
hold() {
	VOLUME=""
	while [ -z "$VOLUME" ]; do usleep 200000; VOLUME=$(ls -d /sys/block/zd* 2>/dev/null | head -n 1); done
	VOLUME=/dev/${VOLUME##*/}
	usleep 500000
	exec 9<> $VOLUME
}
started() { echo BEGIN > $T/trace_marker; "$@"; }
while read -r line; do
	set -- $line
	case $1 in
	"" | \#*) echo "out: $line"; continue ;;
	pool)
		exec 9>&-
		zpool destroy -f tank 2>/dev/null
		block=$2 size=$3 ashift=12 vdevs=""; shift 3
		for word in "$@"; do
			case $word in ashift=*) ashift=${word#ashift=} ;; *) vdevs="$vdevs $word" ;; esac
		done
		quietly zpool create -f -o ashift=$ashift -O compression=off -O atime=off tank $vdevs
		quietly zfs create -s -V $size -o volblocksize=$block tank/v
		hold; echo "out: $line" ;;
	fill)
		# The program marks its begin, which needs a running trace.
		traced requests $VOLUME load w seq 131072 16 $(($2 / 131072)) 0 $2 1
		exec 9>&-
		quietly zpool export tank; quietly zpool import -d /dev tank
		# An import leaves tasks behind, and the pool writes in a hurry until they are done.
		hold; sleep 30; echo "out: $line" ;;
	load) shift; traced requests $VOLUME load "$@" || echo "FAIL: $line"; echo "out: $line ->$(sums)" ;;
	scrub) traced started quietly zpool scrub -w tank; echo "out: $line ->$(sums)" ;;
	replace)
		quietly zpool offline tank $2
		traced started quietly zpool replace -f -w tank $2 $3; echo "out: $line ->$(sums)" ;;
	idle) traced started true; echo "out: $line ->$(sums)" ;;
	*) echo "FAIL: $line" ;;
	esac
done < /scenario
echo DONE
poweroff -f
