#!/usr/bin/env bash
# Make the attempts. Exit code 4 (attempts are missing) is passed on to the next steps, which end
# with it unless a gate judges the run; every other failure ends the job here.
set -uo pipefail

options=(--name "$SOURCE")
[ -z "$AGENT" ] || options+=(--agent "$AGENT")
[ -z "$SUITE" ] || options+=(--suite "$SUITE")
[ -z "$ATTEMPTS" ] || options+=(--attempts "$ATTEMPTS")
code=0
# shellcheck disable=SC2086 # several options in one input
passhat run "${options[@]}" $RUN_OPTIONS || code=$?
echo "run-exit-code=$code" >> "$GITHUB_OUTPUT"
if [ "$code" -eq 4 ]; then
  echo "::warning title=passhat::passhat run ended with 4: some attempts are missing."
elif [ "$code" -ne 0 ]; then
  echo "::error title=passhat::passhat run ended with $code: nothing was gated, nothing was saved."
  exit "$code"
fi
