#!/usr/bin/env bash
# Keep the attempts as the next baseline: after the gate, and only when it was green. The file is
# written beside the old one and replaces it, so that a job that is canceled leaves the old one.
set -uo pipefail

if [ "$CODE" != 0 ]; then
  echo "::notice title=passhat::The baseline $TARGET stays as it is: the gate ended with $CODE."
  exit 0
fi
mkdir -p "$(dirname "$TARGET")"
if ! passhat export "$SOURCE" -o "$TARGET.new.jsonl" || ! [ -s "$TARGET.new.jsonl" ]; then
  echo "::error title=passhat::The baseline $TARGET could not be written."
  exit 1
fi
mv "$TARGET.new.jsonl" "$TARGET"
