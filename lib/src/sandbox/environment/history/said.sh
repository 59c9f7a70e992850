# said.sh STATE: after probe.sh, which of the texts on standard input, one a line, stand in a file of the base
# commit.
state=$1
cat > "$state/texts"
export GIT_DIR="$state/git" GIT_OBJECT_DIRECTORY="$(cat "$state/objects-at")"
git ls-tree -r "$(cat "$state/base")" | awk '$2 == "blob" { print $3 }' | sort -u | git cat-file --batch 2>/dev/null |
  grep -aoF -f "$state/texts" | sort -u
exit 0
