#!/usr/bin/env bash
# The fuzz targets under libFuzzer, with stable Rust and a C++ compiler.
#
#   rust/fuzz/fuzz.sh run SECONDS [TARGET...]   each target so long; exits with 1 on a finding
#   rust/fuzz/fuzz.sh minimize [TARGET...]      the corpus anew, of what runs have found
#
# Runs begin with corpus/ and keep what they find in work/; findings go to findings/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# What cargo-fuzz passes too, but for the tracing of comparisons, which takes more than half of the
# time and which structured cases gain nothing by.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
--cfg fuzzing ${FUZZ_RUSTFLAGS:-}"
# With a target, build scripts go without these flags.
host="$(rustc -vV | sed -n 's/^host: //p')"
folder="${CARGO_TARGET_DIR:-../../target}/$host/fuzz"

build() {
    cargo build --locked --profile fuzz -p tokfold-fuzz --features libfuzzer --target "$host"
}

options() {
    # Entropic scheduling costs as much as an execution.
    case "$1" in
    grammar_text) echo "-entropic=0 -max_len=512 -dict=grammar_text.dict" ;;
    regular_expressions) echo "-entropic=0 -max_len=96 -dict=regular_expressions.dict" ;;
    json_schema) echo "-entropic=0 -max_len=200 -dict=json_schema.dict" ;;
    lark) echo "-entropic=0 -max_len=200 -dict=lark.dict" ;;
    *) echo "-entropic=0 -max_len=160" ;;
    esac
}

run() {
    local seconds="$1" target log status=0
    shift
    for target in "$@"; do
        mkdir -p "work/$target" "findings/$target"
        log="work/$target.log"
        # shellcheck disable=SC2046
        if ! "$folder/$target" "work/$target" "corpus/$target" $(options "$target") \
            -max_total_time="$seconds" -timeout=10 -rss_limit_mb=3000 -print_final_stats=1 \
            -artifact_prefix="findings/$target/" >"$log" 2>&1; then
            status=1
            echo "$target: found something"
            grep -a -A3 panicked "$log" || tail -n 20 "$log"
            echo "again: REPLAY=rust/fuzz/$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)" \
                "cargo test -p tokfold-fuzz one_replays"
        fi
        awk -v target="$target" '/^stat::number_of_executed_units/ { count = $2 }
            /^stat::average_exec_per_sec/ { rate = $2 }
            END { printf "%s: %d executions, %d a second\n", target, count, rate }' "$log"
    done
    return "$status"
}

minimize() {
    local target
    for target in "$@"; do
        rm -rf "corpus/$target.new"
        mkdir -p "corpus/$target.new" "work/$target"
        # Edges alone, not how often each is passed: few files that reach all.
        # shellcheck disable=SC2046
        "$folder/$target" "corpus/$target.new" "corpus/$target" "work/$target" $(options "$target") \
            -set_cover_merge=1 -use_counters=0 >"work/$target.log" 2>&1
        # The largest reach most.
        (cd "corpus/$target.new" && ls -S | tail -n +101 | while read -r file; do rm "$file"; done)
        rm -rf "corpus/$target"
        mv "corpus/$target.new" "corpus/$target"
        echo "$target: $(find "corpus/$target" -type f | wc -l) files"
    done
}

command="${1:?run or minimize}"
shift
arguments=()
if [ "$command" = run ]; then
    arguments=("${1:?seconds}")
    shift
fi
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    targets=(grammar_text vocabulary artefacts matcher_operations random_grammars
        regular_expressions json_schema lark structural_tags)
fi
build
"$command" ${arguments[@]+"${arguments[@]}"} "${targets[@]}"
