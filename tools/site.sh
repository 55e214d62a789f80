#!/bin/bash
# Builds the module, and puts the page, the module and the book into target/site, and the npm package into target/npm.
# Status 3: the WebAssembly target is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
out=target/site

if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    echo "The target $target is missing. Install it: rustup target add $target" >&2
    exit 3
fi
# `strip` of the profile leaves the names of functions in.
"${CARGO:-cargo}" rustc --quiet --profile web --target $target --package fullstroke-web --crate-type cdylib -- -C link-arg=--strip-all
module=${CARGO_TARGET_DIR:-target}/$target/web/fullstroke_web.wasm

rm -rf $out target/npm
mkdir -p $out target/npm
cp web/index.html web/*.js web/style.css web/icon.svg $out
cp crates/answers/report/src/looks.css $out
cp "$module" $out/fullstroke.wasm
book=yes
command -v mdbook >/dev/null && command -v python3 >/dev/null || book=no
# A link to a missing page is worse than none.
[ $book = yes ] || sed -i 's| <a href="book/[^"]*">[^<]*</a>||' $out/index.html
# The service worker keeps these files until one of them changes.
digest=$(cd $out && cat ./* | sha256sum | cut -c 1-16)
sed -i "s/DIGEST/$digest/" $out/sw.js

cp web/npm/* target/npm
cp "$module" target/npm/fullstroke.wasm

if [ $book = yes ]; then
    mdbook build --dest-dir "$PWD/$out/book"
else
    echo "The book is left out: mdBook or Python is missing (make book says how to install them)."
fi
if command -v node >/dev/null; then node tools/site-links.mjs $out; fi
echo "The site stands in $out, the package in target/npm."
