# related.sh OTHER STATE: after probe.sh, whether the repository OTHER is a copy of the one probed that holds more
# than the past: DETECTOR <tab> WHERE <tab> WHAT, or nothing.
place=$1 state=$2
base=$(cat "$state/base") || exit 0
export GIT_DIR="$state/git" GIT_OBJECT_DIRECTORY="$(cat "$state/objects-at")"
if [ ! -f "$state/base-blobs" ]; then
  git ls-tree -r "$base" | awk '$2 == "blob" { print $3 }' | sort -u > "$state/base-blobs"
fi
rm -rf "$state/other"
shadow "$place" "$state/other" || exit 1
cd "$state" || exit 1
all_objects 2>/dev/null | sort -u > other-all
cut -d ' ' -f 1 other-all > other-ids
sed -n 's/ commit$//p' other-all > other-commits
shared=$(comm -12 other-commits allowed | wc -l)
files=$(comm -12 other-ids base-blobs | wc -l)
total=$(wc -l < base-blobs)
comm -23 other-ids known > other-later
if [ -s other-later ] &&
  { [ "$shared" -gt 0 ] || { [ $((files * 5)) -ge "$total" ] && { [ "$files" -ge 3 ] || [ "$total" -lt 10 ]; }; }; }; then
  commits=$(comm -23 other-commits allowed | wc -l | tr -d ' ')
  newest=$(comm -23 other-commits allowed | head -n 1)
  what="a copy of this repository with $(wc -l < other-later | tr -d ' ') objects that are no part of the past, $commits of them commits"
  if [ -n "$newest" ]; then what="$what, for example $(git log -1 --date=short --format='%h %s (%cd)' "$newest" 2>/dev/null)"; fi
  say nested-repository "$place" "$what"
fi
