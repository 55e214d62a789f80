#!/bin/bash
# Builds the module, and puts the page, the module and the book into target/site, and the npm package into target/npm.
# Status 3: the WebAssembly target is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
out=target/site
mkdir -p target

if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    echo "The target $target is missing. Install it: rustup target add $target" >&2
    exit 3
fi
# `strip` of the profile leaves the names of functions in. Without `--compress-relocations` the linker pads each number of a
# function to five bytes: 8 % of the module, and 1.4 % with brotli.
"${CARGO:-cargo}" rustc --quiet --profile web --target $target --package fullstroke-web --crate-type cdylib -- \
    -C link-arg=--strip-all -C link-arg=--compress-relocations
module=${CARGO_TARGET_DIR:-target}/$target/web/fullstroke_web.wasm

# Two runs at once (`make --jobs=2 site web-check`) must not remove each other's files, so each run fills
# folders of its own. The folders take their places only when they are complete.
new=$(mktemp -d target/site-XXXXXX)
trap 'rm -rf "$new"' EXIT
mkdir "$new/site" "$new/npm"
cp web/index.html web/*.js web/style.css web/icon.svg "$new/site"
cp crates/answers/report/src/looks.css "$new/site"
cp "$module" "$new/site/fullstroke.wasm"
book=yes
command -v mdbook >/dev/null && command -v python3 >/dev/null || book=no
# A link to a missing page is worse than none.
[ $book = yes ] || sed -i 's| <a href="book/[^"]*">[^<]*</a>||' "$new/site/index.html"
# The service worker keeps these files until one of them changes.
digest=$(cd "$new/site" && cat ./* | sha256sum | cut -c 1-16)
sed -i "s/DIGEST/$digest/" "$new/site/sw.js"

cp web/npm/* "$new/npm"
cp "$module" "$new/npm/fullstroke.wasm"

if [ $book = yes ]; then
    mdbook build --dest-dir "$PWD/$new/site/book"
else
    echo "The book is left out: mdBook or Python is missing (make book says how to install them)."
fi
if command -v node >/dev/null; then node tools/site-links.mjs "$new/site"; fi

# The lock ends with this script, however the script ends. Where flock is missing, the moment without a lock
# is short.
exec 9>target/site.lock
if command -v flock >/dev/null; then flock 9; fi
rm -rf $out target/npm
mv "$new/site" $out
mv "$new/npm" target/npm
echo "The site stands in $out, the package in target/npm."
