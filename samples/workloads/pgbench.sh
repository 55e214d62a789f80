# shellcheck shell=bash disable=SC2034,SC2154 # read by, and read from, capture.sh
# PostgreSQL under pgbench: the TPC-B-like transaction at a given rate, on a
# database that is several times the memory left for caching it. The server's
# settings are its defaults but for a checkpoint each minute, so that a short
# window holds several.

workload_title="PostgreSQL under pgbench, TPC-B-like, scale 150, 16 clients, 70 transactions/s offered"
workload_seconds=300
workload_memory=$((512 << 20))
workload_packages=(postgresql postgresql-contrib)
readonly pgbench_scale=150
readonly pgbench_rate=70

postgres_program() {
    local programs=(/usr/lib/postgresql/*/bin)
    echo "${programs[-1]}/$1"
}

as_postgres() { runuser -u postgres -- "$@"; }

postgres_start() {
    limited runuser -u postgres -- "$(postgres_program pg_ctl)" start -s -w \
        -D "$volume_mount/postgres/data" -l "$scratch/postgres/log"
}

run_pgbench() { (cd / && as_postgres "$(postgres_program pgbench)" -h "$scratch/postgres" "$@"); }

workload_prepare() {
    age_volume
    install -d -o postgres "$volume_mount/postgres" "$scratch/postgres"
    as_postgres "$(postgres_program initdb)" --auth=trust -D "$volume_mount/postgres/data" >/dev/null
    cat >>"$volume_mount/postgres/data/postgresql.conf" <<CONFIGURATION
listen_addresses = ''
unix_socket_directories = '$scratch/postgres'
checkpoint_timeout = 60s
CONFIGURATION
    postgres_start
    run_pgbench --quiet --initialize --scale="$pgbench_scale" postgres >/dev/null 2>&1
    workload_stop
}

# Half a minute under load: the caches fill and the log's segments are recycled.
workload_warm() {
    postgres_start
    offer_load 30
}

workload_run() { offer_load "$1"; }

offer_load() {
    run_pgbench --client=16 --jobs=2 --rate="$pgbench_rate" --time="$1" --no-vacuum postgres \
        >"$scratch/pgbench.log" 2>&1 || fail "pgbench: $(tail -n 3 "$scratch/pgbench.log")"
}

workload_stop() {
    as_postgres "$(postgres_program pg_ctl)" stop -s -w -m fast -D "$volume_mount/postgres/data"
}

workload_versions() {
    "$(postgres_program postgres)" --version
    echo "database: $(du -sm "$volume_mount/postgres/data" | cut -f 1) MiB with its log"
    grep -E '^(number of transactions|latency|tps|rate limit)' "$scratch/pgbench.log"
}
