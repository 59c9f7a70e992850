# said.sh STATE: after probe.sh, which of the texts on standard input, one a line, stand in a file of the base
# commit; of texts within each other it may be the longest alone.
state=$1
cat > "$state/texts"
export GIT_DIR="$state/git" GIT_OBJECT_DIRECTORY="$(cat "$state/objects-at")"
said() {
  git ls-tree -r "$(cat "$state/base")" | awk '$2 == "blob" { print $3 }' | sort -u | git cat-file --batch 2>/dev/null
}
if [ "$(printf 'abc d\n' | grep -aoF -e b -e abc -e d | tr '\n' ' ')" = 'abc d ' ]; then
  said | grep -aoF -f "$state/texts" | sort -u
else
  # a grep that tells the first text of a line alone (busybox)
  said > "$state/said"
  while IFS= read -r text; do
    if grep -qaF -e "$text" "$state/said"; then printf '%s\n' "$text"; fi
  done < "$state/texts"
fi
exit 0
