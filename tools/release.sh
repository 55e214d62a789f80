#!/usr/bin/env bash
# Builds one static program for Linux and packs it with completions, manual pages, licences and what README.md's commands read:
# target/release-files/fullstroke-VERSION-TARGET.tar.gz and its SHA-256. TARGET is x86_64-unknown-linux-musl unless given.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-x86_64-unknown-linux-musl}

refuse() { echo "$1" >&2; exit 2; }

rustup target list --installed 2>/dev/null | grep -qx "$target" \
	|| refuse "Rust has no $target. Install it: rustup target add $target"
case $target in
	*-musl)
		# zstd and xz are C, and are built with a compiler for musl.
		compiler=CC_${target//-/_}
		[ -n "${!compiler:-}" ] || command -v "${target%%-*}-linux-musl-gcc" >/dev/null || command -v musl-gcc >/dev/null \
			|| refuse "A C compiler for musl is missing. Install it: sudo apt-get install -y musl-tools"
		export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" ;;
esac

cargo build --profile dist --locked --package fullstroke --target "$target"
binary=${CARGO_TARGET_DIR:-target}/$target/dist/fullstroke
version=$("$binary" --version | cut -d' ' -f2)
name=fullstroke-$version-$target
into=target/release-files
rm -rf "${into:?}/$name"
make --no-print-directory install BINARY="$binary" PREFIX= DESTDIR="$into/$name"
cp -r README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT docs samples stacks studies wishes "$into/$name/"
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$into" -czf "$into/$name.tar.gz" "$name"
(cd "$into" && sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256")
