# What probe.sh, related.sh, tree.sh and strip.sh share. Plain sh; git 2.11 or later.
#
# A repository to look into may be hostile: its configuration can name programs (hooks, file-system monitors, filters,
# credential helpers, transports of a promisor remote), include other files, redirect the work tree, rewrite history
# (replace refs, grafts) or disown us (safe.directory). So git is never run on it: `shadow` makes a repository of our
# own with an empty configuration, whose objects are those of the repository and whose refs are a copy.
set -u
for name in $(env | sed -n 's/^\(GIT_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$name"; done
unset XDG_CONFIG_HOME
export LC_ALL=C HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 \
  GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0
umask 022
hex='[0-9a-f]\{40\}\([0-9a-f]\{24\}\)\{0,1\}'

# The first tool of these scripts that is not here: without it, much would look like nothing.
missing() {
  for tool in git awk cmp comm cut find grep head mktemp paste sed sort tr wc; do
    command -v "$tool" > /dev/null || { printf '%s' "$tool"; return; }
  done
}

# say DETECTOR WHERE WHAT: one finding
say() { printf '%s\t%s\t%s\n' "$1" "$2" "$(printf '%s' "$3" | tr '\t\n' '  ')"; }

# The repository's own folder: of a checkout, of a bare clone, or where a `.git` file points.
git_dir() {
  if [ -d "$1/.git" ]; then
    printf '%s' "$1/.git"
  elif [ -f "$1/.git" ]; then
    to=$(sed -n 's/^gitdir: //p' "$1/.git" | head -n 1)
    case $to in /*) ;; *) to=$1/$to ;; esac
    [ -d "$to" ] && printf '%s' "$to"
  elif [ -d "$1/objects" ] && [ -e "$1/HEAD" ]; then
    printf '%s' "$1"
  fi
}

# shadow REAL AT: makes the stand-in of the repository REAL at the new folder AT, and turns git to it.
shadow() {
  mkdir -p "$2/objects" "$2/refs" || return 1
  export GIT_DIR="$2" GIT_OBJECT_DIRECTORY="$1/objects"
  cp -R -P "$1/refs/." "$2/refs/" 2>/dev/null
  for name in packed-refs shallow reftable; do
    if [ -e "$1/$name" ]; then cp -R -P "$1/$name" "$2/" 2>/dev/null; fi
  done
  objects=$(git config -f "$1/config" --get extensions.objectformat 2>/dev/null)
  storage=$(git config -f "$1/config" --get extensions.refstorage 2>/dev/null)
  {
    printf '[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tcommitGraph = false\n\tmultiPackIndex = false\n'
    printf '[gc]\n\tauto = 0\n[extensions]\n'
    case $objects in sha256) printf '\tobjectFormat = sha256\n' ;; esac
    case $storage in reftable) printf '\trefStorage = reftable\n' ;; esac
  } > "$2/config"
  # HEAD is resolved by hand: the copy must not name a place outside
  head=$(head -c 1000 "$1/HEAD" 2>/dev/null | head -n 1)
  case $head in
    'ref: refs/'*) printf '%s\n' "$head" > "$2/HEAD" ;;
    *) printf 'ref: refs/heads/none\n' > "$2/HEAD"
       if printf '%s' "$head" | grep -q "^$hex\$"; then printf '%s\n' "$head" > "$2/HEAD"; fi ;;
  esac
}

# Every object that is there, sorted: OBJECT TYPE.
all_objects() {
  git cat-file --batch-all-objects --unordered --batch-check='%(objectname) %(objecttype)' 2>/dev/null ||
    git cat-file --batch-all-objects --batch-check='%(objectname) %(objecttype)'
}

# closure COMMIT...: all that is reachable from commits or tags, sorted.
closure() {
  { git rev-list --objects --missing=allow-any "$@" 2>/dev/null || git rev-list --objects "$@"; } |
    cut -d ' ' -f 1 | sort -u
}

# keep BASE DIR: writes to DIR which commits (`allowed`) and which refs (`refs-kept`, `refs-later`: OBJECT REF) belong to
# the base commit's past, and all objects of that past (`known`). HEAD may be one commit past the base commit where that
# holds nothing new, or was made by those who set the environment up.
keep() {
  setup=
  tip=$(git rev-parse --verify -q 'HEAD^{commit}')
  if [ -n "$tip" ] && [ "$tip" != "$1" ] && [ "$(git log -1 --format=%P "$tip" 2>/dev/null)" = "$1" ]; then
    case $(git log -1 --format=%ce "$tip") in
      memtrial@localhost|setup@swebench.config) setup=$tip ;;
      *) if [ "$(git rev-parse "$tip^{tree}")" = "$(git rev-parse "$1^{tree}")" ]; then setup=$tip; fi ;;
    esac
  fi
  printf '%s' "$setup" > "$2/setup"
  git rev-list "$1" $setup | sort -u > "$2/allowed"
  git for-each-ref --format='%(objectname) %(refname)' > "$2/refs"
  sed 's/ .*/^{}/' "$2/refs" | git cat-file --batch-check='%(objectname) %(objecttype)' |
    paste -d ' ' - "$2/refs" > "$2/peeled"
  : > "$2/refs-kept"; : > "$2/refs-later"
  awk -v kept="$2/refs-kept" -v later="$2/refs-later" '
    NR == FNR { allowed[$1] = 1; next }
    { out = later
      if ($2 == "commit" && ($1 in allowed) && $4 ~ /^refs\/(heads|tags|remotes)\//) out = kept
      print $3, $4 > out }' "$2/allowed" "$2/peeled"
  # annotated tags are objects of their own
  { printf '%s\n' "$1" $setup; cut -d ' ' -f 1 "$2/refs-kept"; } | sort -u > "$2/tips"
  closure --stdin < "$2/tips" > "$2/known"
}
