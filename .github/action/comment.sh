#!/usr/bin/env bash
# One comment per gate of a pull request, updated by every run: two uses of the action have one
# each. A token that may not write (a pull request from a fork has such a one) costs the comment,
# never the verdict.
set -uo pipefail

marker="<!-- passhat gate ${KEY:-} -->"
{
  echo "$marker"
  # GitHub takes 65,536 characters.
  head -c 60000 passhat-gate.md
  echo
  [ "${RUN_CODE:-0}" = 0 ] || echo "passhat run ended with $RUN_CODE: some attempts are missing."
  echo "[Report and all attempts]($RUN_URL#artifacts)"
} > passhat-comment.md

warn() {
  echo "::warning title=passhat::The comment was not written ($1). The verdict is in the job summary."
  exit 0
}

comments="repos/$REPOSITORY/issues/$NUMBER/comments"
ids=$(gh api "$comments" --paginate --jq ".[] | select(.body | startswith(\"$marker\")) | .id") \
  || warn "the comments cannot be read"
comment=$(head -n 1 <<< "$ids")
if [ -n "$comment" ]; then
  gh api --silent -X PATCH "repos/$REPOSITORY/issues/comments/$comment" -F body=@passhat-comment.md \
    || warn "the token may not edit it"
else
  gh api --silent -X POST "$comments" -F body=@passhat-comment.md || warn "the token may not write"
fi
