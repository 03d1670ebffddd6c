#!/usr/bin/env bash
# Keep the attempts as the next baseline: after the gate, and only when it was green and settled.
# From one unsettled gate to the next the baseline could sink in steps that none of them shows. The
# file is written beside the old one and replaces it, so that a canceled job leaves the old one.
set -uo pipefail

if [ "$CODE" != 0 ]; then
  echo "::notice title=passhat::The baseline $TARGET stays as it is: the gate ended with $CODE."
  exit 0
fi
if [ "${SETTLED:-true}" != true ]; then
  echo "::notice title=passhat::The baseline $TARGET stays as it is: the gate was not settled."
  exit 0
fi
mkdir -p "$(dirname "$TARGET")"
if ! passhat export "$SOURCE" -o "$TARGET.new.jsonl" || ! [ -s "$TARGET.new.jsonl" ]; then
  echo "::error title=passhat::The baseline $TARGET could not be written."
  exit 1
fi
mv "$TARGET.new.jsonl" "$TARGET"
