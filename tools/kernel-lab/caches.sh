#!/bin/busybox sh
# The guest of tools/kernel-lab.py --cache: carries out the lines of /scenario on a cache in front of
# a device, and prints each line with the I/O of both devices and the counters of the cache.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mkdir -p /dev /proc /sys /run /tmp /etc
mount -t devtmpfs none /dev; mount -t proc none /proc; mount -t sysfs none /sys
mount -t tracefs none /sys/kernel/tracing; mount -t tmpfs none /run
touch /etc/mtab
. /settings
for module in $(cat /modules.order); do
	case $module in
	null_blk*) insmod /lib/modules/$module nr_devices=0 ;;
	*) insmod /lib/modules/$module ;;
	esac || echo "FAIL: insmod $module"
done
mount -t configfs none /sys/kernel/config 2>/dev/null
T=/sys/kernel/tracing
echo 65536 > $T/buffer_size_kb
echo mono > $T/trace_clock
echo 1 > $T/events/block/block_rq_issue/enable
echo "kernel: $(uname -r), origin of $ORIGIN_US us a request, flash of $FLASH_US us"

quietly() { "$@" > /tmp/log 2>&1 || { echo "FAIL: $*"; cat /tmp/log; }; }
# device NAME MIB MICROSECONDS ROTATIONAL: a device with memory.
device() {
	d=/sys/kernel/config/nullb/$1
	mkdir $d || echo "FAIL: $d"
	for pair in size=$2 completion_nsec=$(($3 * 1000)) irqmode=2 queue_mode=2 memory_backed=1 \
		blocksize=$BLOCK hw_queue_depth=64 submit_queues=1 rotational=$4 discard=0; do
		[ -f $d/${pair%%=*} ] && echo ${pair#*=} > $d/${pair%%=*}
	done
	echo 1 > $d/power
	node=/sys/block/$1
	[ -d $node ] || node=/sys/block/nullb$(cat $d/index)
	echo $4 > $node/queue/rotational; echo none > $node/queue/scheduler
	eval "$1=/dev/${node##*/} ${1}_id=$(cat $node/dev)"
}
DM="dmsetup --noudevsync --noudevrules"
# table NAME TABLE: a device-mapper device. Without udev it has its number as a name.
table() {
	quietly $DM create $1 --table "$2"
	eval "$1=/dev/dm-$($DM info -c --noheadings -o minor $1)"
}
kind=""
stop_cache() {
	case $kind in
	bcache)
		echo 1 > /sys/block/bcache0/bcache/stop
		for set in /sys/fs/bcache/*-*-*; do [ -d $set ] && echo 1 > $set/stop; done
		n=0; while [ -e /sys/block/bcache0 ] || ls -d /sys/fs/bcache/*-*-* > /dev/null 2>&1; do
			usleep 100000; n=$((n + 1)); [ $n = 1200 ] && { echo "FAIL: bcache stays"; break; }
		done ;;
	dm-*) quietly $DM remove cached
		[ $kind = dm-cache ] && { quietly $DM remove meta; quietly $DM remove data; } ;;
	esac
	[ -n "$kind" ] && for name in origin flash; do echo 0 > /sys/kernel/config/nullb/$name/power; rmdir /sys/kernel/config/nullb/$name; done
	kind=""
}
# cache KIND MODE MIB [key=value ...]
start_cache() {
	stop_cache
	kind=$1 mode=$2 mib=$3; shift 3
	device origin $ORIGIN_MIB $ORIGIN_US 1; device flash $mib $FLASH_US 0
	sectors=$((ORIGIN_MIB * 2048))
	case $kind in
	bcache)
		quietly make-bcache --block 512 --bucket 512k -C $flash
		quietly make-bcache --block 512 -B $origin
		for part in $flash $origin; do echo $part > /sys/fs/bcache/register || { echo "FAIL: register $part"; dmesg | tail -n 3; }; done
		usleep 500000
		B=/sys/block/bcache0/bcache
		echo $(basename $(ls -d /sys/fs/bcache/*-*-*)) > $B/attach
		echo $mode > $B/cache_mode
		for word in "$@"; do
			file=$B/${word%%=*}; [ -f $file ] || file=$(ls -d /sys/fs/bcache/*-*-*)/${word%%=*}
			echo ${word#*=} > $file || echo "FAIL: $word"
		done
		disk=/dev/bcache0 ;;
	dm-cache)
		metadata=8192 features=""
		for word in "$@"; do features="$features $(echo $word | tr = ' ')"; done
		table meta "0 $metadata linear $flash 0"
		quietly dd if=/dev/zero of=$meta bs=4096 count=1024 oflag=direct
		table data "0 $((mib * 2048 - metadata)) linear $flash $metadata"
		table cached "0 $sectors cache $meta $data $origin 512 1 $mode smq $(($# * 2))$features"
		disk=$cached ;;
	dm-writecache)
		quietly dd if=/dev/zero of=$flash bs=4096 count=1 oflag=direct
		options=""
		for word in "$@"; do options="$options $(echo $word | tr = ' ')"; done
		table cached "0 $sectors writecache s $origin $flash 4096 $(($# * 2))$options"
		disk=$cached ;;
	esac
	usleep 1000000
}
counters() {
	case $kind in
	# stats_total is summed up with a delay, so the sums over the devices count the hits.
	bcache) echo " dirty=$(cat $B/dirty_data)" ;;
	*) echo " status=$(dmsetup status cached | cut -d' ' -f4- | tr ' ' ',')" ;;
	esac
}
sums() {
	awk -v origin=$origin_id -v flash=$flash_id '
	function time_of() { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) return substr($i, 1, length($i) - 1) + 0 }
	/tracing_mark_write: BEGIN/ { begin = time_of() }
	/tracing_mark_write: END/ { end = time_of() }
	/block_rq_issue:/ {
		at = index($0, "block_rq_issue:"); split(substr($0, at + 16), f, " ")
		if (begin == "" || end != "") next
		kind = substr(f[2], 1, 1); gsub(",", ":", f[1])
		if (kind == "F") { kind = substr(f[2], 2, 1); if (f[7] + 0 == 0) { flushes[f[1]]++; next } }
		n[f[1] kind]++; kib[f[1] kind] += f[7] / 2
	}
	END {
		printf " ms=%d", (end - begin) * 1000
		printf " origin=%d/%d+%d/%d", n[origin "R"], kib[origin "R"], n[origin "W"], kib[origin "W"]
		printf " flash=%d/%d+%d/%d\n", n[flash "R"], kib[flash "R"], n[flash "W"], kib[flash "W"]
	}' $T/trace
}
while read -r line; do
	set -- $line
	case $1 in
	"" | \#*) echo "out: $line"; continue ;;
	cache) shift; start_cache "$@"; echo "out: $line" ;;
	rest)
		echo > $T/trace; echo 1 > $T/tracing_on; echo BEGIN > $T/trace_marker
		usleep $(($2 * 1000)); echo END > $T/trace_marker; echo 0 > $T/tracing_on
		echo "out: $line ->$(sums)$(counters)" ;;
	load | stream)
		echo > $T/trace; echo 1 > $T/tracing_on
		requests $disk "$@" || echo "FAIL: requests $*"
		echo 0 > $T/tracing_on
		echo "out: $line ->$(sums)$(counters)" ;;
	*) echo "FAIL: $line" ;;
	esac
done < /scenario
stop_cache
echo DONE
poweroff -f
