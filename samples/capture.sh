#!/usr/bin/env bash
# Captures the sample workloads: runs each on ext4 over a loop device and
# records, with the kernel's own block tracer, every request that reaches the
# device. README.md beside this file says how the shipped traces were made.
#
# A workload is one file in workloads/; it defines
#   workload_title           one line for the record
#   workload_seconds         the length of the traced window
#   workload_memory          the memory limit in bytes, page cache included
#   workload_packages        Debian packages that it needs
#   workload_prepare         fills the volume (not traced)
#   workload_warm            starts servers, reaches a steady state (not traced)
#   workload_run SECONDS     the traced window
#   workload_stop            stops servers; also called when anything fails
#   workload_versions        one line per program, for the record
set -euo pipefail

samples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly samples
readonly volume_size=64G

usage() {
    cat <<USAGE
usage: capture.sh [-o DIR] [-s DIR] [-t SECONDS] [-k] WORKLOAD...

WORKLOAD is one or more of: $(known_workloads), or all.

  -o DIR      where the traces go (default: the folder of this script)
  -s DIR      scratch space, about 16 GiB on a real disk (default: /var/tmp)
  -t SECONDS  length of the traced window (default: the workload's own)
  -k          keep the blkparse text beside the native trace
  -h          this text

It must run as root: it mounts a file system, reads the kernel's tracer and
limits memory with a control group. Missing Debian packages are installed.
The native trace is written by "fullstroke trace convert"; the program is taken
from \$FULLSTROKE, or from target/release in this repository.
USAGE
}

known_workloads() {
    local file names=()
    for file in "$samples"/workloads/*.sh; do
        names+=("$(basename "$file" .sh)")
    done
    echo "${names[*]}"
}

say() { echo "capture: $*" >&2; }

fail() {
    say "error: $*"
    exit 2
}

# ---- what must be undone, in whatever state we stop -------------------------

scratch=''
volume=''          # the loop device
volume_mount=''
tracing=''         # tracefs
tracing_is_ours=''
trace_enabled=''
trace_reader=''
memory_group=''
workload_active=''
workload_runner=''

clean_up() {
    local status=$?
    trap - EXIT INT TERM
    set +e
    [[ -n $workload_runner ]] && kill "$workload_runner" 2>/dev/null
    [[ -n $workload_active ]] && workload_stop
    stop_tracing
    [[ -n $memory_group ]] && remove_memory_group
    release_volume
    [[ -n $tracing_is_ours ]] && umount "$tracing"
    [[ -n $scratch ]] && rm -rf --one-file-system "$scratch"
    exit "$status"
}

# ---- packages ---------------------------------------------------------------

install_packages() {
    local package missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    ((${#missing[@]} == 0)) && return
    say "installing: ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# ---- the volume -------------------------------------------------------------

# A sparse image: the file system sees the whole address span, the host's disk
# holds only what was written. Direct I/O keeps the host's page cache out.
create_volume() {
    truncate -s "$volume_size" "$scratch/volume.img"
    volume=$(losetup --find --show --direct-io=on "$scratch/volume.img")
    # Told that the device rotates, ext4 and the block layer behave as they
    # would on the disks that the trace is replayed on.
    echo 1 >"$(queue_of_volume)/rotational"
    echo mq-deadline >"$(queue_of_volume)/scheduler"
    # The kernel's default for a disk. Over direct I/O a loop device takes twenty
    # times that, derived from the host's disk.
    echo 128 >"$(queue_of_volume)/read_ahead_kb"
    # Inode tables and journal are initialised now, not by a thread that would
    # write behind the workload's back.
    mkfs.ext4 -q -L samples -E lazy_itable_init=0,lazy_journal_init=0 "$volume"
    volume_mount=$scratch/mount
    mkdir -p "$volume_mount"
    mount "$volume" "$volume_mount"
}

queue_of_volume() { echo "/sys/block/$(basename "$volume")/queue"; }

# Unmounting forgets all cached data and metadata of this file system, and
# unlike drop_caches leaves everyone else's alone.
make_caches_cold() {
    sync -f "$volume_mount"
    umount "$volume_mount"
    mount "$volume" "$volume_mount"
}

release_volume() {
    [[ -n $volume_mount ]] && mountpoint -q "$volume_mount" && umount "$volume_mount"
    [[ -n $volume ]] && losetup --detach "$volume"
    [[ -n $scratch ]] && rm -f "$scratch/volume.img"
    volume=''
    volume_mount=''
}

# Gives the empty file system the look of a used one: files of 64 MiB fill it,
# then every eighth goes, so that what follows is spread over the whole volume.
# The blocks are allocated but not written, which takes no space on the host.
age_volume() {
    local directory=$volume_mount/older count=0 index
    mkdir "$directory"
    while fallocate -l 64M "$directory/$(printf '%05d' "$count")" 2>/dev/null; do
        count=$((count + 1))
    done
    for ((index = 0; index <= count; index += 8)); do
        rm -f "$directory/$(printf '%05d' "$index")"
    done
}

# ---- memory limit -----------------------------------------------------------

# Without a limit the page cache of a large machine would swallow the reads.
create_memory_group() {
    local bytes=$1 version1
    if grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then
        memory_group=/sys/fs/cgroup/fullstroke-capture-$$
        mkdir "$memory_group"
        echo "$bytes" >"$memory_group/memory.max"
        return
    fi
    version1=/sys/fs/cgroup/memory$(awk -F: '$2 == "memory" { print $3 }' /proc/self/cgroup)
    [[ -d $version1 ]] || fail "no memory control group: neither version 2 at /sys/fs/cgroup nor version 1 at $version1; mount one"
    memory_group=$version1/fullstroke-capture-$$
    mkdir "$memory_group"
    echo "$bytes" >"$memory_group/memory.limit_in_bytes"
}

# Ends what still runs in the group, which is ours alone. Processes that were
# told to end may take a moment to be gone.
remove_memory_group() {
    local attempt left
    for attempt in {1..50}; do
        mapfile -t left <"$memory_group/cgroup.procs"
        ((${#left[@]} == 0)) || kill "${left[@]}" 2>/dev/null || true
        rmdir "$memory_group" 2>/dev/null && break
        sleep 0.1
    done
    [[ ! -d $memory_group ]] || say "left behind after $attempt attempts: $memory_group"
    memory_group=''
}

# Runs a command, and all that it starts, within the memory limit.
limited() {
    # shellcheck disable=SC2016 # the inner shell expands these
    sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$memory_group" "$@"
}

# ---- the tracer -------------------------------------------------------------

find_tracing() {
    tracing=/sys/kernel/tracing
    [[ -e $tracing/current_tracer ]] && return
    tracing=$scratch/tracing
    mkdir -p "$tracing"
    mount -t tracefs tracefs "$tracing" || fail "tracefs cannot be mounted; the kernel needs CONFIG_FTRACE and this shell root"
    tracing_is_ours=yes
    grep -qw blk "$tracing/available_tracers" ||
        fail "the kernel has no blk tracer (available: $(cat "$tracing/available_tracers")); it needs CONFIG_BLK_DEV_IO_TRACE"
}

start_tracing() {
    local text=$1
    echo 0 >"$tracing/tracing_on"
    echo >"$tracing/trace"
    echo mono >"$tracing/trace_clock"        # one clock for all processors
    echo 16384 >"$tracing/buffer_size_kb"    # per processor; bursts must fit
    echo 32768 >"$tracing/saved_cmdlines_size"
    echo blk >"$tracing/current_tracer"
    echo 1 >"$tracing/options/blk_classic"
    echo 1 >"/sys/block/$(basename "$volume")/trace/enable"
    trace_enabled=yes
    cat "$tracing/trace_pipe" >"$text" &
    trace_reader=$!
    echo 1 >"$tracing/tracing_on"
}

# Once tracing is off and the buffers are empty there is nothing left to read,
# but the reader of trace_pipe would wait for more for ever.
stop_tracing() {
    local attempt
    [[ -n $trace_enabled ]] || return 0
    trace_enabled=''
    echo 0 >"$tracing/tracing_on"
    for attempt in {1..100}; do
        buffers_are_empty && break
        sleep 0.1
    done
    ((attempt < 100)) || say "the tracer's buffers did not run empty"
    sleep 0.5 # lets the reader write what it holds
    kill "$trace_reader"
    wait "$trace_reader" 2>/dev/null || true
    echo 0 >"/sys/block/$(basename "$volume")/trace/enable"
    echo nop >"$tracing/current_tracer"
    echo local >"$tracing/trace_clock"
    echo 1408 >"$tracing/buffer_size_kb"
    echo 1 >"$tracing/tracing_on"
}

buffers_are_empty() { ! grep -q '^entries: [1-9]' "$tracing"/per_cpu/cpu*/stats; }

# A trace with holes is worse than none.
check_text() {
    local text=$1 counts
    if grep -q 'LOST' "$text"; then
        fail "the kernel dropped events; raise buffer_size_kb in start_tracing"
    fi
    counts=$(awk '{ seen[$5]++ } END { printf "Q %d D %d C %d", seen["Q"], seen["D"], seen["C"] }' "$text")
    say "events: $counts"
    [[ $counts != 'Q 0 '* ]] || fail "no request was queued on the volume; the trace holds $counts"
}

# ---- one capture ------------------------------------------------------------

# shellcheck disable=SC2154 # the workload_… names are set by the workload's file
record_conditions() {
    local seconds=$1 queue
    queue=$(queue_of_volume)
    echo "workload: $workload_title"
    echo "captured: $(date -u +%Y-%m-%d)"
    echo "window: $seconds s"
    echo "kernel: $(uname -sr), $(nproc) processors"
    echo "volume: loop device over a sparse file, $(blockdev --getsize64 "$volume") bytes, direct I/O"
    echo "queue: scheduler $(cat "$queue/scheduler"), max_sectors_kb $(cat "$queue/max_sectors_kb"), nr_requests $(cat "$queue/nr_requests"), read_ahead_kb $(cat "$queue/read_ahead_kb"), logical block $(cat "$queue/logical_block_size"), rotational $(cat "$queue/rotational")"
    echo "file system: $(findmnt -n -o FSTYPE,OPTIONS "$volume_mount" | tr -s ' '), $(mkfs.ext4 -V 2>&1 | head -n 1)"
    echo "memory limit: $workload_memory bytes, page cache included"
    workload_versions
}

convert() {
    local text=$1 native=$2 program=${FULLSTROKE:-$samples/../target/release/fullstroke}
    if [[ ! -x $program ]]; then
        say "no fullstroke at $program, so the text stays; when it is built: fullstroke trace convert $text $native"
        return
    fi
    "$program" trace convert "$text" "$native"
    [[ -n $keep_text ]] || rm "$text"
}

capture() {
    local name=$1 seconds text
    # shellcheck source=/dev/null # one of workloads/*.sh
    source "$samples/workloads/$name.sh"
    seconds=${window:-$workload_seconds}
    text=$output/$name.blkparse.gz
    # shellcheck disable=SC2154 # set by the workload's file
    install_packages "${workload_packages[@]}"

    create_volume
    create_memory_group "$workload_memory"
    workload_active=yes
    say "$name: preparing the volume"
    workload_prepare
    make_caches_cold
    workload_warm
    say "$name: tracing for $seconds s"
    start_tracing "$scratch/trace.txt"
    # In the background, for an interrupt must not wait for the window's end.
    workload_run "$seconds" &
    workload_runner=$!
    wait "$workload_runner"
    workload_runner=''
    sleep 1 # lets the last requests complete
    stop_tracing
    record_conditions "$seconds" >"$output/$name.conditions.txt"
    workload_stop
    workload_active=''
    remove_memory_group
    release_volume

    check_text "$scratch/trace.txt"
    gzip <"$scratch/trace.txt" >"$text"
    convert "$text" "$output/$name.parquet"
}

# ---- arguments --------------------------------------------------------------

output=$samples
scratch_parent=/var/tmp
window=''
keep_text=''
while getopts 'o:s:t:kh' option; do
    case $option in
        o) output=$OPTARG ;;
        s) scratch_parent=$OPTARG ;;
        t) window=$OPTARG ;;
        k) keep_text=yes ;;
        h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
(($# > 0)) || { usage >&2 && exit 2; }
[[ $1 == all ]] && read -r -a workloads <<<"$(known_workloads)" || workloads=("$@")

for name in "${workloads[@]}"; do
    [[ -f $samples/workloads/$name.sh ]] || fail "unknown workload '$name'; known: $(known_workloads)"
done
[[ -z $window || $window =~ ^[1-9][0-9]*$ ]] || fail "-t takes a whole number of seconds, not '$window'"
((EUID == 0)) || fail "must run as root: it mounts a file system and reads the kernel's tracer"
mkdir -p "$output"
output=$(cd "$output" && pwd)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
scratch=$(mktemp -d "$scratch_parent/fullstroke-capture.XXXXXX")
chmod 755 "$scratch" # servers run as users of their own
install_packages e2fsprogs util-linux gzip
find_tracing
for name in "${workloads[@]}"; do
    capture "$name"
done
