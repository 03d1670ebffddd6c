#!/usr/bin/env bash
# Judge the run before anything is saved. Writes outputs; the last step of the action ends with the
# code, so that the comment and the report come first.
set -uo pipefail

RUN_CODE=${RUN_CODE:-0}
finish() { # code, verdict, whether there was a gate, and whether it was settled
  {
    echo "exit-code=$1"
    echo "verdict=$2"
    echo "gated=$3"
    echo "settled=${4:-true}"
    echo "key=$(cksum <<< "${GATE:-}" | cut -d ' ' -f 1)"
  } >> "$GITHUB_OUTPUT"
  exit 0
}

arguments=("$SOURCE")
has_baseline=false
if [ -n "$BASELINE" ]; then
  # A name with a dot or a slash is a file, or a run of the store (gpt-4.1-main); any other is a run.
  case "$BASELINE" in
    *[./]*)
      if [ -e "$BASELINE" ] || passhat runs --json 2> /dev/null | grep -qF ": \"$BASELINE\""; then
        has_baseline=true
      fi
      ;;
    *) has_baseline=true ;;
  esac
fi
rules=0
waiting=""
while IFS= read -r rule; do
  [ -n "${rule// /}" ] || continue
  if [ "$has_baseline" = false ] && [ -n "$BASELINE" ] && [[ "$rule" == *base* ]]; then
    waiting="$waiting, $rule" # it compares with a baseline that is not there yet
    continue
  fi
  arguments+=("$rule")
  rules=$((rules + 1))
done <<< "$RULES"
if [ -n "$waiting" ]; then
  echo "::notice title=passhat::No baseline yet ($BASELINE does not exist), so these rules were not asked: ${waiting#, }"
fi

# What was never judged is no first baseline: the rule holds for every run that has verdicts.
if [ "$has_baseline" = false ] && [ "$rules" -eq 0 ] && [ "$RUN_CODE" -eq 0 ]; then
  judged=0
  COLUMNS=2000 passhat gate "$SOURCE" "pass^1 >= 0" ${MAX_MISSING:+--max-missing "$MAX_MISSING"} \
    > passhat-gate.txt 2>&1 || judged=$?
  if [ "$judged" -ne 0 ]; then
    verdict=$(head -n 1 passhat-gate.txt)
    printf 'passhat gate ended with %s.\n\n%s\n' "$judged" "$verdict" > passhat-gate.md
    cat passhat-gate.txt >&2
    finish "$judged" "$verdict" true
  fi
fi

if [ "$has_baseline" = false ] && [ "$rules" -eq 0 ]; then
  text="No baseline yet: nothing was compared."
  [ -z "$BASELINE" ] || text="No baseline yet ($BASELINE does not exist): nothing was compared."
  [ "$RUN_CODE" -eq 0 ] || text="Incomplete: passhat run ended with $RUN_CODE, attempts are missing."
  [ "$RUN_CODE" -ne 0 ] || [ -z "$SAVE" ] || text="$text This run becomes the baseline."
  echo "::notice title=passhat::$text"
  echo "$text" | tee passhat-gate.md >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
  finish "$RUN_CODE" "$text" false
fi

[ "$has_baseline" = false ] || arguments+=(--against "$BASELINE")
[ -z "$MARGIN" ] || arguments+=(--margin "$MARGIN")
[ -z "$MAX_MISSING" ] || arguments+=(--max-missing "$MAX_MISSING")
# Fresh attempts need an agent that can be run; without rules only, since a rule names its subject.
CONFIRM=${CONFIRM,,}
if [ "${CONFIRM:-false}" != false ] && [ "$rules" -eq 0 ] && [ -z "$RESULTS" ]; then
  if [ "$CONFIRM" = true ]; then arguments+=(--confirm); else arguments+=(--confirm "$CONFIRM"); fi
  [ -z "$RUN_OPTIONS" ] || arguments+=(--again "$RUN_OPTIONS")
fi
code=0
# passhat itself appends to $GITHUB_STEP_SUMMARY. One wide line is one line of output.
COLUMNS=2000 passhat gate "${arguments[@]}" --unsettled "$UNSETTLED" -o passhat-gate.xml \
  -o passhat-gate.md -o passhat-gate.json > passhat-gate.txt 2> passhat-gate.err || code=$?
cat passhat-gate.txt
cat passhat-gate.err >&2
verdict=$(head -n 1 passhat-gate.txt)
# An error (a baseline that cannot be read, other protocols) prints no verdict: it is the verdict.
[ -n "$verdict" ] || verdict=$(grep -m 1 '^passhat: \|^Error: ' passhat-gate.err || tail -n 1 passhat-gate.err)
[ -s passhat-gate.md ] && [ "$code" -ne 2 ] || printf 'passhat gate ended with %s.\n\n%s\n' "$code" "$verdict" > passhat-gate.md
settled=true
# A rule that is not settled may be green by the input "unsettled", and is no baseline for that.
! grep -qs '"verdict": "not settled"' passhat-gate.json || settled=false
finish "$code" "$verdict" true "$settled"
