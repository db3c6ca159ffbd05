#!/usr/bin/env bash
# Trains on one or more ranks: mpirun ... octavo train CONFIG.
#
#   launch/train.sh CONFIG [--ranks N] [--threads N] [--set KEY=VALUE]... [--progress live|plain]
#                         [--profile]
#
#   --ranks N     processes; default 1
#   --threads N   threads of each rank; default: physical cores / ranks, at least 1
#   --set K=V     changes a setting of CONFIG, e.g. --set trainer.max_updates=1000
#   --progress W  live on a terminal, else plain
#   --profile     at the end, where rank 0's time went
#
# Ctrl-C, SIGTERM or a closed terminal: all ranks finish the update, save and leave with code 0.
# A second Ctrl-C ends them at once. Environment: OCTAVO names the program; OMPI_MCA_... overrides
# what is chosen for Open MPI below.
set -euo pipefail

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "error: launch/train.sh: $*" >&2; exit 2; }
count() {  # OPTION VALUE
  [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || fail "$1 is '$2'; it must be a number from 1 to 9999"
}
several_hosts() {
  [[ -n ${OMPI_MCA_orte_default_hostfile:-} ]] ||
    [[ ${SLURM_JOB_NUM_NODES:-1} =~ ^[0-9]+$ && ${SLURM_JOB_NUM_NODES:-1} -gt 1 ]]
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
config='' ranks=1 threads='' progress='' options=()
while (($# > 0)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --ranks | --threads | --progress | --set)
      (($# > 1)) || fail "$1 needs a value"
      case $1 in
        --ranks) count "$1" "$2"; ranks=$2 ;;
        --threads) count "$1" "$2"; threads=$2 ;;
        --progress) progress=$2 ;;
        --set) options+=(--set "$2") ;;
      esac
      shift ;;
    --profile) options+=(--profile) ;;
    -*) fail "no option '$1'; --help lists them" ;;
    *) [[ -z $config ]] || fail "two configurations: '$config' and '$1'"; config=$1 ;;
  esac
  shift
done
[[ -n $config ]] || { usage >&2; exit 2; }
if [[ -z $progress ]]; then
  # Under mpirun every rank's output looks like a terminal: only we can tell.
  if [[ -t 2 ]]; then progress=live; else progress=plain; fi
fi
[[ $progress == live || $progress == plain ]] || fail "--progress is '$progress'; it must be live or plain"

program=${OCTAVO:-}
if [[ -z $program ]]; then
  for program in "$root"/build/{cuda-release,cpu-release,*}/octavo; do [[ -x $program ]] && break; done
fi
[[ -x $program ]] || fail "no program at $program. Build it (launch/test.sh does), or name it in OCTAVO."

# Physical cores, or less if this process is held to a part of the machine.
usable_cores() {
  local cores quota period
  cores=$(lscpu -p=CORE,SOCKET 2>/dev/null | grep -v '^#' | sort -u | wc -l) || true
  ((cores >= 1 && cores <= $(nproc))) || cores=$(nproc)
  if [[ -r /sys/fs/cgroup/cpu.max ]] && read -r quota period </sys/fs/cgroup/cpu.max &&
    [[ $quota != max ]]; then
    ((cores * period <= quota)) || cores=$(((quota + period - 1) / period))
  fi
  echo "$cores"
}
cores=$(usable_cores)
: "${threads:=$((cores / ranks > 0 ? cores / ranks : 1))}"
export OMP_NUM_THREADS=$threads  # Binding them to cores brought nothing.
most=$((16 * $(nproc) > 64 ? 16 * $(nproc) : 64))
several_hosts || ((ranks <= most)) ||
  fail "--ranks $ranks on $(nproc) processors; more than $most would only wait for each other"

command=("$program" train "$config" --progress "$progress" --threads "$threads" "${options[@]}")
if ! command -v mpirun >/dev/null; then
  ((ranks == 1)) || fail "--ranks $ranks needs mpirun (Debian: openmpi-bin), which isn't installed"
  echo "[train] no mpirun here: one rank runs alone" >&2
  exec "${command[@]}"
fi

# Files of this run: gone when it ends, even if a rank, mpirun or this script was killed.
work=$(mktemp -d -p /dev/shm octavo.XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$work"' EXIT
words=$work/last_words
: >"$words"
export OCTAVO_LAST_WORDS=$words

# What each choice is for:
#   pml ob1           no probing of network libraries, which complain in containers
#   btl               on one host only shared memory; on several TCP, without what complains
#   single_copy none  reading another process's memory is forbidden in most containers
#   execute_quiet     the ranks themselves say what happened
#   sigkill_timeout   seconds that mpirun waits before it sends SIGTERM, and again before SIGKILL
set_by_user=$(compgen -e OMPI_MCA_ | paste -sd ' ') || true
choose() { export "OMPI_MCA_$1=$(printenv "OMPI_MCA_$1" || echo "$2")"; }
choose pml ob1
choose btl_vader_single_copy_mechanism none
choose mca_base_component_show_load_errors 0
choose orte_execute_quiet 1
choose odls_base_sigkill_timeout 300
if several_hosts; then
  : >"$words.ready"  # rank 0 may be on another host, and its word that it is does not come
  choose btl ^openib,ofi
else
  choose btl self,vader
  choose btl_vader_backing_directory "$work"
  choose orte_tmpdir_base "$work"
fi
options=(--oversubscribe --bind-to none -n "$ranks" -x OMP_NUM_THREADS)
for name in OMP_WAIT_POLICY GOMP_SPINCOUNT; do [[ -z ${!name:-} ]] || options+=(-x "$name"); done
((EUID != 0)) || options+=(--allow-run-as-root)

# mpirun answers SIGINT and SIGTERM by killing the ranks after a while. SIGUSR1 it hands on, and the
# ranks take all the time they need. In a session of its own it sees no Ctrl-C but ours. Before the
# ranks are ready there is nothing to save, and mpirun may not know them yet: it is ended.
signals=0 mpirun=''
# shellcheck disable=SC2317  # the traps call it
hand_on() {
  signals=$((signals + 1))
  [[ -n $mpirun ]] || return 0  # it is being started, and told then
  if ((signals > 2)); then kill -TERM "$mpirun" 2>/dev/null || true; fi
  ask_to_stop
}
ask_to_stop() {
  if [[ -e $words.ready ]]; then
    kill -USR1 "$mpirun" 2>/dev/null || true
  else
    : >"$work/early"
    kill -TERM "$mpirun" 2>/dev/null || true
  fi
}
trap hand_on INT TERM HUP

# Whether any child of mpirun has not ended yet; sends it a signal. Like its caller it starts no
# process: it is called twice a second for days.
ranks_run() {  # SIGNAL (0: none)
  local task children child stat running=1
  for task in /proc/"$mpirun"/task/*; do
    children=()
    read -ra children <"$task"/children || true  # the file has no newline
    for child in "${children[@]}"; do
      read -r stat <"/proc/$child/stat" || continue
      if [[ ${stat##*) } == Z* ]]; then continue; fi
      running=0
      kill -s "$1" "$child" || true
    done
  done
  return $running
}

# Whether the script was killed that its watcher belongs to. $$ is the script's number there, too.
orphaned() {
  local stat
  read -r stat <"/proc/$BASHPID/stat"
  stat=${stat##*) ?}
  [[ $stat != " $$ "* ]]
}

# Once a rank has failed, mpirun waits twice sigkill_timeout even if no rank is left. We don't: half
# a second if the ranks have said how they ended, else two before they were ready and then eight, in
# which mpirun shows what they wrote.
# If this script was killed, the ranks are asked to save and leave: nobody could stop them otherwise.
watch_mpirun() {
  local never idle=0 patience looks orphan=0 signal
  trap '' TERM HUP INT  # to the whole process group
  exec {never}<> <(:)
  # Ranks may fail as soon as they start: look often until they do, a minute at most. They may also
  # have come and gone between two looks: then they left a word, or were told to stop.
  for ((looks = 0; looks < 6000; ++looks)); do
    if ranks_run 0 || [[ -s $words || -e $work/early ]]; then break; fi
    read -rt 0.01 -u "$never" || true
  done
  while kill -0 "$mpirun"; do
    read -rt 0.5 -u "$never" || true
    if ((!orphan)) && orphaned; then orphan=1; ask_to_stop; fi
    # A rank that has just been started may not have heard of it.
    if [[ -e $work/early && ! -e $words.ready ]]; then signal=TERM; else signal=0; fi
    if ranks_run "$signal"; then idle=0; else idle=$((idle + 1)); fi
    if [[ -s $words ]]; then patience=1; elif [[ -e $words.ready ]]; then patience=16; else patience=4; fi
    if ((idle > patience)); then : >"$work/idle"; kill -KILL "$mpirun" || true; fi
  done
  ((!orphan)) || rm -rf "$work"
}

# Ranks notice a second later that mpirun was killed. Until then they may write into the run's folder.
# After eight seconds they are killed.
await_ranks() {
  local left looks
  for ((looks = 0; looks < 100; ++looks)); do
    left=$(grep -slzFx "OCTAVO_LAST_WORDS=$words" /proc/[0-9]*/environ) || true
    [[ -n $left ]] || return 0
    # shellcheck disable=SC2086  # one number a word
    ((looks < 80)) || kill -KILL ${left//[!0-9]/ } 2>/dev/null || true
    sleep 0.1
  done
}

setsid mpirun "${options[@]}" "${command[@]}" </dev/null &
mpirun=$!
((signals == 0)) || hand_on
export -n OCTAVO_LAST_WORDS
# Some kernels don't tell a process's children: then mpirun itself must notice everything.
watcher=''
if [[ -r /proc/$$/task/$$/children ]]; then
  watch_mpirun &>/dev/null &
  watcher=$!
  disown "$watcher"  # its end is nothing to report
fi
code=0
while kill -0 "$mpirun" 2>/dev/null; do  # a signal ends `wait` early
  wait "$mpirun" 2>/dev/null && code=0 || code=$?
done
wait "$mpirun" 2>/dev/null && last=0 || last=$?
((last == 127)) || code=$last  # 127: waited for before
[[ -z $watcher ]] || kill -KILL "$watcher" 2>/dev/null || true
if ((code > 128)); then
  if [[ -s $words ]]; then said=1; else said=0; fi
  await_ranks
  ((said)) || : >"$words"  # who speaks only now says that it lost mpirun
fi

if [[ -e $work/idle ]]; then ended=1; else ended=0; fi
# An mpirun that was signalled shows nothing more of what ranks write.
((!ended)) || sed -n 's/^note //p' "$words" >&2
ranks_code=$(sed -n 's/^exit 0*\([0-9]\)/\1/p' "$words" | sort -n | tail -n 1)
if [[ -e $work/early && ! -e $words.ready && ${ranks_code:-0} != 2 ]]; then
  echo "[train] stopped as asked, before the first update" >&2
  exit 0
fi
sed -n 's/^say //p' "$words" >&2
if [[ -n $ranks_code ]] && ((ranks_code > 0 || code == 1 || ended)); then
  code=$ranks_code
elif [[ ! -e $words.ready ]] && ((code > 0)); then
  echo "error: launch/train.sh: the ranks ended while MPI started (code $code)." \
    "OMPI_MCA_orte_execute_quiet=0 lets Open MPI say why.${set_by_user:+ It was told: $set_by_user}" >&2
  code=3
elif ((ended)); then
  code=1
  echo "error: launch/train.sh: all ranks ended before they could say why" >&2
elif ((code > 128)); then
  echo "error: launch/train.sh: signal $((code - 128)) ended mpirun, and with it the ranks. Start again to go" \
    "on from the newest checkpoint." >&2
elif ((code == 1 || code > 4)); then
  echo "error: launch/train.sh: mpirun ended with code $code, and no rank said why." \
    "OMPI_MCA_orte_execute_quiet=0 lets mpirun speak." >&2
fi
exit "$code"
