#!/bin/busybox sh
# The guest of tools/kernel-lab.py: carries out the lines of /scenario and prints each line with the
# member I/O that the kernel issued.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mkdir -p /dev /proc /sys /run /tmp /etc /m
mount -t devtmpfs none /dev; mount -t proc none /proc; mount -t sysfs none /sys
mount -t tracefs none /sys/kernel/tracing; mount -t tmpfs none /run
touch /etc/mtab
. /settings
for module in $(cat /modules.order); do
	case $module in
	null_blk*) [ -z "$NULL_BLK" ] || insmod /lib/modules/$module $NULL_BLK || insmod /lib/modules/$module ${NULL_BLK/ rotational=?/} ;;
	*) insmod /lib/modules/$module ;;
	esac || echo "FAIL: insmod $module"
done
# Members of different latencies: size in MiB, memory, requests at a time, sectors of the largest request.
number=0
for latency in $LATENCIES; do
	[ $number = 0 ] && mount -t configfs none /sys/kernel/config
	at=/sys/kernel/config/nullb/nullb$number
	mkdir $at
	set -- $APART
	echo $1 > $at/size; echo 512 > $at/blocksize; echo 2 > $at/queue_mode; echo 2 > $at/irqmode
	echo $2 > $at/memory_backed; echo $3 > $at/hw_queue_depth; [ $4 = 0 ] || echo $4 > $at/max_sectors
	echo $latency > $at/completion_nsec; echo 1 > $at/power
	number=$((number + 1))
done
T=/sys/kernel/tracing
echo 16384 > $T/buffer_size_kb
echo mono > $T/trace_clock
echo 1 > $T/events/block/block_rq_issue/enable
# Older kernels of null_blk have no parameter for it.
for name in $NAMES; do
	queue=/sys/block/$name/queue
	echo $ROTATIONAL > $queue/rotational; echo $ELEVATOR > $queue/scheduler
	[ $WBT = 1 ] || echo 0 > $queue/wbt_lat_usec
	# An elevator holds twice as many requests as the member, too few for one request at a time.
	[ $ELEVATOR = none ] || [ $(cat $queue/nr_requests) -ge 64 ] || echo 64 > $queue/nr_requests
done
first=/sys/block/${NAMES%% *}/queue
echo "kernel: $(uname -r), members of $(cat $first/max_sectors_kb) KiB a request, $(cat $first/scheduler)"

quietly() { "$@" > /tmp/log 2>&1 || { echo "FAIL: $*"; cat /tmp/log; }; }
stop_array() {
	[ -b /dev/md0 ] && [ -d /sys/block/md0/md ] && quietly mdadm --stop /dev/md0
	for name in $NAMES; do mdadm --zero-superblock /dev/$name > /dev/null 2>&1; done
}
# The device of a member, by its number.
member() { set -- $1 $NAMES; shift $(($1 + 1)); echo /dev/$1; }
# array LEVEL MEMBERS [chunk=KIB] [layout=NAME] [missing=N] [bitmap=internal|none] [stripes=N] [ppl] [journal]
start_array() {
	stop_array
	REBUILT=""
	level=$1 members=$2; shift 2
	options="" bitmap=--bitmap=none stripes=""
	[ $level = raid0 ] && bitmap=""
	for word in "$@"; do
		case $word in
		chunk=*) options="$options --chunk=${word#*=}" ;;
		layout=*) options="$options --layout=${word#*=}" ;;
		bitmap=*) bitmap=--bitmap=${word#*=} ;;
		stripes=*) stripes=${word#*=} ;;
		# mdadm gives an array with a log its policy of consistency, and refuses a word about a bitmap.
		ppl) bitmap=--consistency-policy=ppl ;;
		journal) bitmap=--write-journal=$(member $members) ;;
		*) echo "FAIL: $word" ;;
		esac
	done
	devices="" n=0
	while [ $n -lt $members ]; do devices="$devices $(member $n)"; n=$((n + 1)); done
	echo > $T/trace; echo 1 > $T/tracing_on; echo BEGIN > $T/trace_marker
	quietly mdadm --create /dev/md0 --run --force --assume-clean --homehost=any $bitmap \
		--level=$level --raid-devices=$members $options $devices
	[ -n "$stripes" ] && echo $stripes > /sys/block/md0/md/stripe_cache_size
	note_members
	usleep 300000
	# The first opening makes the kernel look for partitions.
	: < /dev/md0
	usleep 300000
	echo 0 > $T/tracing_on
}
# The place and the beginning of the data of each member.
note_members() {
	: > /run/offsets
	for member in /sys/block/md0/md/dev-*; do
		# The journal has the word instead of a number.
		echo "$(cat ${member%/md/dev-*}/md/$(basename $member)/block/dev | cut -d: -f2) $(cat $member/slot | sed 's/journal/J/') $(cat $member/offset)" >> /run/offsets
	done
}
cold() {
	size=$(cat /sys/block/md0/md/stripe_cache_size)
	[ -f /sys/block/md0/md/stripe_cache_size ] || { echo "FAIL: cold"; return; }
	echo 17 > /sys/block/md0/md/stripe_cache_size; usleep 200000
	echo $size > /sys/block/md0/md/stripe_cache_size
}
# Member I/O between the marks, or as sums. The superblock lies before the data, and is left out.
member_io() {
	awk -v mode=$1 -v records=$RECORDS -v rebuilt="$REBUILT" -v half=$HALF '
	BEGIN { while ((getline line < "/run/offsets") > 0) { split(line, f, " "); slot[f[1]] = f[2]; data[f[1]] = f[3] } }
	function number(kib) { return kib == int(kib) ? sprintf("%d", kib) : sprintf("%.1f", kib) }
	function time_of() { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) return substr($i, 1, length($i) - 1) + 0 }
	/tracing_mark_write: BEGIN/ { begin = time_of() }
	/tracing_mark_write: END/ { end = time_of() }
	/block_rq_issue:/ {
		at = index($0, "block_rq_issue:"); split(substr($0, at + 16), f, " ")
		split(f[1], device, ","); kind = substr(f[2], 1, 1); d = device[2]
		if (kind == "F") { kind = substr(f[2], 2, 1); if (f[6] + 0 == 0 && f[7] + 0 == 0) next }
		sector = f[5] + 0; sectors = f[7] + 0
		if (!(d in slot) || begin == "") next
		if (sector < data[d]) { early[kind]++; early_kib[kind] += sectors / 2; if (mode == "all") printf " %s%s@-%sK+%sK", kind, slot[d], number((data[d] - sector) / 2), number(sectors / 2); next }
		if (mode == "single" || mode == "all") printf " %s%s@%sK+%sK", kind, slot[d], number((sector - data[d]) / 2), number(sectors / 2)
		# In the first second of a load, members have the I/O that the rebuild began without requests.
		if (end == "" && slot[d] == rebuilt && kind == "W" && sector - data[d] < half && time_of() > begin + 1) rebuilt_kib += sectors / 2
		n[kind]++; kib[kind] += sectors / 2; each[slot[d] kind] += 1; bytes[slot[d] kind] += sectors / 2
	}
	END {
		if (mode != "sums") { printf "\n"; exit }
		printf " reads=%d read_kib=%d writes=%d written_kib=%d ms=%d", n["R"], kib["R"], n["W"], kib["W"], (end - begin) * 1000
		if (records) {
			getline last < "/run/end"
			printf " records=%d records_kib=%s since_ms=%d", early["W"], number(early_kib["W"]), (begin - last) * 1000
			printf "%f\n", end > "/run/end.new"
		}
		if (rebuilt != "") printf " rebuilt_kib=%d", rebuilt_kib
		printf " members="
		if ("JW" in each) printf "J:%d/%d,", each["JW"], bytes["JW"]
		for (m = 0; m < 32; m++) if ((m "R") in each || (m "W") in each) printf "%s%d:%d/%d+%d/%d", (m ? "," : ""), m, each[m "R"], bytes[m "R"], each[m "W"], bytes[m "W"]
		printf "\n"
	}' $T/trace
	[ -f /run/end.new ] && mv /run/end.new /run/end
}
run() {
	echo > $T/trace; echo 1 > $T/tracing_on
	requests $FIRST /dev/md0 "$@" || echo "FAIL: requests $*"
	echo 0 > $T/tracing_on
}
while read -r line; do
	set -- $line
	case $1 in
	"" | \#*) echo "out: $line"; continue ;;
	array) shift; start_array "$@"; echo "out: $line" ;;
	cold) cold; echo "out: $line" ;;
	rest)
		echo > $T/trace; echo 1 > $T/tracing_on; echo BEGIN > $T/trace_marker
		usleep $(($2 * 1000)); echo END > $T/trace_marker; echo 0 > $T/tracing_on
		echo "out: $line ->$(member_io $([ "$3" = sums ] && echo sums || echo $MODE))" ;;
	fail) quietly mdadm /dev/md0 --fail $(member $2); usleep 300000; echo "out: $line" ;;
	add)
		quietly mdadm /dev/md0 --fail $(member $2); usleep 300000
		quietly mdadm /dev/md0 --remove $(member $2); mdadm --zero-superblock $(member $2) > /dev/null 2>&1
		quietly mdadm /dev/md0 --add $(member $2); sleep 3
		note_members; REBUILT=$2
		grep -q recovery /proc/mdstat || { echo "FAIL: $line"; cat /proc/mdstat; }
		echo "out: $line" ;;
	set) echo $3 > /sys/block/md0/md/$2 || echo "FAIL: $line"; echo "out: $line" ;;
	r | w | s) run single $1 $2 $3; echo "out: $line ->$(member_io $MODE)" ;;
	load) shift; run load "$@"; echo "out: $line ->$(member_io sums)" ;;
	stream) shift; run stream "$@"; echo "out: $line ->$(member_io sums)" ;;
	started) echo "out: $line ->$(member_io single)" ;;
	show) echo "out: $line -> $(cat /sys/block/md0/$2 | tr '\n' ' ')" ;;
	*) echo "FAIL: $line" ;;
	esac
done < /scenario
echo DONE
poweroff -f
