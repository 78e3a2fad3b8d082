#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the text that the quick start trains on: the King James Bible of Debian's bible-kjv package, 4.1 MB of
# public-domain English prose. One verse per line without its number, a blank line between chapters.
# usage: tools/corpus.sh OUTPUT.txt
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/corpus.sh OUTPUT.txt" >&2; exit 2; }
command -v bible >/dev/null || { echo "corpus: bible-kjv is missing: run tools/setup.sh" >&2; exit 1; }
mkdir -p "$(dirname "$1")"
# A line reads "Ge1:1 In the beginning ...": book and chapter up to the colon. -f keeps a verse on one line.
bible -f 'Genesis1:1-Revelation22:21' </dev/null | awk '
  {
    chapter = substr($1, 1, index($1, ":") - 1)
    if (NR > 1 && chapter != last) print ""
    last = chapter
    print substr($0, length($1) + 2)
  }' >"$1.partial"
mv "$1.partial" "$1"
