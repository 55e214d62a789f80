# shellcheck shell=bash disable=SC2034,SC2154 # read by, and read from, capture.sh
# A media directory: 96 films of 512 MiB fill three quarters of the volume, and
# every fourth has viewers. 16 streams start one second apart, somewhere within
# a film, and read at 8, 16, 25 or 40 Mbit/s through the page cache, as a file
# server would; at the end of a film a stream goes on with the next.

workload_title="16 streams at 8 to 40 Mbit/s (22.25 on average) from a media directory"
workload_seconds=180
workload_memory=$((512 << 20))
workload_packages=(pv)
readonly stream_count=16
readonly film_count=96
readonly film_mebibytes=512
readonly film_stride=4 # one film in so many is read

film() { printf '%s/media/film-%02d.mp4' "$volume_mount" "$1"; }

# Films that nobody reads are allocated only; those that are read must be
# written, for the file system answers reads of unwritten blocks by itself.
workload_prepare() {
    local index
    mkdir "$volume_mount/media"
    for ((index = 0; index < film_count; index++)); do
        fallocate -l "${film_mebibytes}M" "$(film "$index")"
        ((index % film_stride == 0)) || continue
        dd if=/dev/zero of="$(film "$index")" bs=1M count="$film_mebibytes" conv=notrunc oflag=direct status=none
    done
}

workload_warm() { :; }

# One viewer: the stream's number gives its film, its place there and its rate.
stream() {
    local number=$1 seconds=$2 bits=(8 16 25 40) rate place film_index
    rate=$((bits[number % 4] * 1000000 / 8))
    place=$((number * 37 % (film_mebibytes / 2)))
    film_index=$((number * film_stride * 5 % film_count))
    # shellcheck disable=SC2016 # the inner shell expands these
    limited timeout "$seconds" bash -c '
        rate=$1 place=$2; shift 2
        for film in "$@"; do
            { dd bs=1M skip="$place" count=0 status=none; pv -q -L "$rate"; } <"$film" >/dev/null
            place=0
        done
    ' stream "$rate" "$place" "$(film "$film_index")" \
        "$(film $(((film_index + film_stride) % film_count)))" \
        "$(film $(((film_index + 2 * film_stride) % film_count)))" || true
}

workload_run() {
    local number viewers=()
    for ((number = 0; number < stream_count; number++)); do
        stream "$number" $(($1 - number)) &
        viewers+=($!)
        sleep 1
    done
    wait "${viewers[@]}"
}

workload_stop() { :; }

workload_versions() { pv --version | head -n 1; }
