#!/usr/bin/env bash
# fresh_debian.sh [--ci] - the README's two commands on a bare Debian 12, which holds git and nothing else of ours.
#
# Makes a minimal root with debootstrap in a temporary folder, clones the committed state of this checkout inside it
# with nothing of the host but its registry settings, and runs `./dev run` twice and `./dev serve` once: the answers must not be
# empty, and the later calls must not build. With --ci, `.ci/run` follows. Needs root and debootstrap; exits 77 (skipped) without.
set -euo pipefail

question="Why is the sky blue?"
build_limit_s=$((10 * 60))
ci_limit_s=$((20 * 60))
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

[ "$(id -u)" -eq 0 ] || { echo "needs root"; exit 77; }
command -v debootstrap >/dev/null || { echo "needs debootstrap (apt-get install debootstrap)"; exit 77; }

work=$(mktemp -d "${TMPDIR:-/tmp}/fresh-debian-XXXXXX")
system=$work/root
cleanup() {
  umount "$system/dev/pts" "$system/proc" 2>/dev/null || true
  # A root that is still mounted somewhere below is left alone.
  if ! grep -q " $system/" /proc/mounts; then rm -rf --one-file-system "$work"; fi
}
trap cleanup EXIT

say() { echo "fresh_debian: $*"; }
die() { say "$*"; exit 1; }

# The Debian mirrors this machine uses, as lines of sources.list.
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
  grep ' bookworm' | sort -u) || die "this machine has no Debian 12 sources to copy"
mirror=$(awk '$3 == "bookworm" { print $2; exit }' <<<"$sources")

say "making a minimal Debian 12"
debootstrap --variant=minbase --include=git,ca-certificates bookworm "$system" "$mirror" >"$work/debootstrap.log" 2>&1 ||
  { tail -n 20 "$work/debootstrap.log"; die "debootstrap failed"; }

# The registries are reached as on the host: mirrors, name server, certificates, pip's settings.
echo "$sources" >"$system/etc/apt/sources.list"
cp -L /etc/resolv.conf "$system/etc/resolv.conf"
cp -L /etc/hosts "$system/etc/hosts"
cp -L /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/ca-certificates.crt"
[ ! -f /etc/pip.conf ] || cp -L /etc/pip.conf "$system/etc/pip.conf"
[ ! -d "${HOME:-/root}/.config/pip" ] || { mkdir -p "$system/root/.config" && cp -rL "${HOME:-/root}/.config/pip" "$system/root/.config/"; }
find /etc/apt/apt.conf.d -type f -exec grep -liE '(Acquire|Verify)' {} + 2>/dev/null |
  xargs --no-run-if-empty cp -t "$system/etc/apt/apt.conf.d" || true
settings=()
while IFS= read -r variable; do settings+=("$variable"); done < <(env | grep -iE '^(PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)|(http|https|no)_proxy)=' || true)
mount -t proc proc "$system/proc"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$system/dev/pts"
ln -sf pts/ptmx "$system/dev/ptmx"

inside() {
  chroot "$system" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" \
    bash -c "$1" </dev/null
}

git clone --quiet --bare "$checkout" "$system/srv/quire.git"
inside 'git config --global --add safe.directory "*" && cd /root && git clone --quiet /srv/quire.git quire'

failures=0
expect() {  # expect STATUS TEXT
  if [ "$1" -eq 0 ]; then say "ok: $2"; else say "FAILED: $2"; failures=$((failures + 1)); fi
}

# Leaves in $cpu_total the seconds of CPU that the commands waited for so far have used. `times` speaks of the shell that
# runs it, so this must not be called in a subshell.
count_cpu() {
  times >"$work/times"
  cpu_total=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$work/times")
}

# A machine that others use takes longer than an idle one would; the cores' share of the work does not change.
# within LIMIT SECONDS CPU_SECONDS
within() { [ "$2" -le "$1" ] || [ $(($3 / $(nproc))) -le $(($1 * 2 / 3)) ]; }

# answer LOG: asks the question, leaves the time in $seconds and $cpu and the number of characters answered in $characters.
answer() {
  local began=$SECONDS used
  count_cpu
  used=$cpu_total
  inside "cd /root/quire && ./dev run '$question'" >"$work/answer" 2>"$work/$1.log" || {
    tail -n 40 "$work/$1.log"
    die "./dev run failed"
  }
  seconds=$((SECONDS - began))
  count_cpu
  cpu=$((cpu_total - used))
  characters=$(tr -d '[:space:]' <"$work/answer" | wc -m)
}

answer first
sed 's/^/  | /' "$work/answer"
expect $((characters == 0)) "./dev run answered $characters characters, $seconds s after a bare system"
status=0
within $build_limit_s $seconds $cpu || status=1
expect $status "installing, building, fetching and answering took at most $build_limit_s s of this machine's cores ($seconds s, $cpu s of CPU)"
answer second
expect $((characters == 0)) "the second ./dev run answered $characters characters after $seconds s"
expect "$(grep -c -e building -e installing "$work/second.log" || true)" "the second ./dev run installed and built nothing"

# The README's main command: a server that prints its URL, answers, and ends in good order.
cat >"$work/ask.sh" <<'SCRIPT'
set -euo pipefail
cd /root/quire
./dev serve --port 0 >/tmp/serve.out 2>/tmp/serve.err &
server=$!
until grep -q http:// /tmp/serve.out; do kill -0 $server; sleep 0.1; done
url=$(grep -o 'http://[0-9.:]*' /tmp/serve.out | head -n 1)
python3 - "$url" <<'PYTHON'
import json, sys, time, urllib.error, urllib.request
url = sys.argv[1]
while True:
    try:
        urllib.request.urlopen(url + "/ready")
        break
    except urllib.error.URLError:
        time.sleep(0.1)
body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 16}
request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
PYTHON
kill -TERM $server
wait $server
SCRIPT
cp "$work/ask.sh" "$system/tmp/ask.sh"
status=0
inside 'bash /tmp/ask.sh' >"$work/served" 2>&1 || status=$?
sed 's/^/  | /' "$work/served"
expect "$status" "./dev serve answered and ended with status $status"
expect $(("$(tr -d '[:space:]' <"$work/served" | wc -m)" == 0)) "the served answer is not empty"

if [ "${1-}" = --ci ]; then
  began=$SECONDS
  count_cpu
  used=$cpu_total
  status=0
  inside "cd /root && rm -rf ci && git clone --quiet /srv/quire.git ci && CI=true bash ci/.ci/run" >"$work/ci.log" 2>&1 || status=$?
  tail -n 30 "$work/ci.log" | sed 's/^/  | /'
  expect "$status" ".ci/run ended with status $status"
  seconds=$((SECONDS - began))
  count_cpu
  cpu=$((cpu_total - used))
  status=0
  within $ci_limit_s $seconds $cpu || status=1
  expect $status ".ci/run took at most $ci_limit_s s of this machine's cores ($seconds s, $cpu s of CPU)"
fi
exit $((failures > 0))
