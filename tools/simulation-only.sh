#!/usr/bin/env bash
# Builds the program without its default features, and uses it: a run must work, and whatever is left out must be refused
# with the name of the feature.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A copy, because the next build with all features writes the same file.
cargo build --quiet --package fullstroke --no-default-features
program=$scratch/fullstroke
cp "${CARGO_TARGET_DIR:-target}/debug/fullstroke" "$program"

"$program" run stacks/bench/closed-random-8k.toml --requests 200 --log "$scratch/log.csv" --json >/dev/null
[ "$(wc -l <"$scratch/log.csv")" -gt 100 ] || { echo "run --log wrote no log"; exit 1; }

# FEATURE ARGUMENTS...: the program ends with status 2 and names the feature.
refused() {
	local feature=$1 status=0
	shift
	"$program" "$@" >"$scratch/out" 2>"$scratch/error" || status=$?
	if [ "$status" != 2 ] || ! grep -q "feature \`$feature\`" "$scratch/error"; then
		echo "fullstroke $*: status $status; expected 2 and the name of the feature \`$feature\`; it said: $(cat "$scratch/error")"
		exit 1
	fi
}
for command in array cache ctl extract heed record replay serve stream-test validate; do
	refused real "$command" some arguments --and an-option
done
refused top top
refused parquet run stacks/bench/closed-random-8k.toml --requests 200 --log "$scratch/log.parquet"
refused parquet trace info samples/media.parquet
printf '\x28\xb5\x2f\xfd\x00' >"$scratch/trace.zst"
refused compression trace info "$scratch/trace.zst"
[ ! -e "$scratch/log.parquet" ] || { echo "a refused log was written"; exit 1; }
echo "the simulation alone runs, and refuses by name what it leaves out"
