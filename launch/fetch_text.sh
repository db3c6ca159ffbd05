#!/usr/bin/env bash
# Gets real parallel text: LibreOffice's help and Debian's package descriptions.
#
#   launch/fetch_text.sh --pair en-de|en-fr --output DIR
#
# Writes {train,dev,test}.{en,de|fr,domain} and manifest.json into DIR; does nothing when they are there.
# Downloads about 20 MB through this system's apt sources and proxies into DIR/download, removed at the
# end; apt's own lists and caches are left alone and nothing is installed. Stopped half-way and started
# again, it goes on.
set -euo pipefail

fail() { echo "error: launch/fetch_text.sh: $*" >&2; exit 2; }

pair='' output=''
while [ $# -gt 0 ]; do
  case "$1" in
    --pair) pair=${2-}; shift 2 || fail "--pair needs en-de or en-fr" ;;
    --output) output=${2-}; shift 2 || fail "--output needs a folder" ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "no option '$1'; there are --pair and --output" ;;
  esac
done
case "$pair" in
  en-de | en-fr) target=${pair#en-} ;;
  *) fail "--pair is '$pair'; it must be en-de or en-fr" ;;
esac
[ -n "$output" ] || fail "--output DIR is missing: the folder where the text is to lie"
output=$(realpath -m -- "$output")
cd "$(dirname "$0")/.."

extract() { PYTHONDONTWRITEBYTECODE=1 python3 launch/text/extract.py --pair "$pair" --output "$output" "$@"; }

if extract --check; then
  echo "[text] $output is up to date"
  exit 0
fi
download=$output/download
for part in train dev test; do
  for file in "$output/$part".{en,"$target",domain}; do
    if [ -e "$file" ] && [ ! -e "$output/manifest.json" ] && [ ! -d "$download" ]; then
      fail "$file is there, but not made by this script, which would overwrite it. Choose another --output."
    fi
  done
done
mkdir -p "$download/lists/partial" "$download/cache/archives/partial" ||
  fail "can't make $download: see above. Choose an --output where you may write."
exec 9>"$download/lock"
flock -n 9 || fail "another run is writing $output; wait for it, or choose another --output"

# apt with folders of its own; only the indexes we read, and nobody's hooks.
{
  echo "Dir::State::lists \"$download/lists\";"
  echo "Dir::Cache \"$download/cache\";"
  echo 'Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";'
  echo '#clear Acquire::Languages;'
  echo "Acquire::Languages { \"en\"; \"$target\"; };"
  echo '#clear APT::Update::Pre-Invoke; #clear APT::Update::Post-Invoke; #clear APT::Update::Post-Invoke-Success;'
  echo 'Acquire::Retries "3"; APT::Sandbox::User "root";'
  apt-config dump | sed -n 's/^Acquire::IndexTargets::\(deb\|deb-src\)::\([^:]*\)::MetaKey.*/\1::\2/p' | sort -u |
    grep -vx -e deb::Packages -e deb::Translations |
    sed 's/.*/Acquire::IndexTargets::&::DefaultEnabled "false";/' || true
} >"$download/apt.conf"
apt() { apt-get -q -c "$download/apt.conf" "$@" </dev/null; }

help_source=libreoffice-help-en-us help_target=libreoffice-help-$target
offline() {
  fail "could not get $1 through this system's apt sources; apt-get's own message stands above.
It needs a network, or a proxy that apt knows, and a Debian whose sources have 'main': try 'apt-get update'.
What has been downloaded is kept in $download: run this again and it goes on."
}
has_list() { compgen -G "$download/lists/*$1*" >/dev/null; }

echo "[text] downloading package indexes and $help_source, $help_target (about 20 MB)"
apt update || echo "[text] apt-get update reported errors; going on with what it got" >&2
for list in _Translation-en "_Translation-$target" _Packages; do
  has_list "$list" || offline "the index *$list"
done

# Prints the file that the newest version of a package lies in, downloaded and checked by apt.
deb_of() {
  local version file
  (cd "$download" && apt download "$1" >&2) || offline "the package $1"
  version=$(apt-cache -c "$download/apt.conf" show --no-all-versions "$1" | sed -n 's/^Version: //p')
  for file in "$download/$1"_*.deb; do
    if [ "$(dpkg-deb --field "$file" Version)" = "$version" ]; then echo "$file"; fi
  done
}
source_deb=$(deb_of "$help_source")
target_deb=$(deb_of "$help_target")

echo "[text] extracting and cleaning $help_source, $help_target and package descriptions (about a minute)"
extract --help-source "$source_deb" --help-target "$target_deb" --lists "$download/lists"
exec 9>&-
rm -rf "$download"
echo "[text] done: $(wc -l <"$output/train.en") pairs to train on, 1000 to develop and 1000 to test, in $output"
