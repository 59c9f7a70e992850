//! What is planted, one leak a case.

type Text = &'static str;

/// One planted leak.
pub(super) struct Case {
    pub(super) name: Text,
    /// The detector that must find it.
    pub(super) detector: Text,
    /// A part of the place that it must name.
    pub(super) place: Text,
    /// Whether `--fix` must take it away.
    pub(super) fixable: bool,
    /// Whether it cannot be planted beside the others.
    pub(super) alone: bool,
    /// Plants it, in the folder of the repository: `fetch` brings refs of the future, `$FIX` and `$BASE` are commits.
    pub(super) script: Text,
}

impl Case {
    /// Whether it only writes files of its own: no other plant adds to its finding, so it may share a sandbox.
    pub(super) fn is_files(&self) -> bool {
        !self.alone && !["fetch", "git "].iter().any(|command| self.script.contains(command))
    }
}

const fn case(name: Text, detector: Text, place: Text, script: Text) -> Case {
    Case { name, detector, place, fixable: true, alone: false, script }
}

/// One that stays after `--fix`.
const fn stays(name: Text, detector: Text, place: Text, script: Text) -> Case {
    Case { name, detector, place, fixable: false, alone: false, script }
}

/// One that spoils the others.
const fn alone(name: Text, detector: Text, place: Text, script: Text) -> Case {
    Case { name, detector, place, fixable: true, alone: true, script }
}

/// One that spoils the others and stays after `--fix`.
const fn alone_and_stays(name: Text, detector: Text, place: Text, script: Text) -> Case {
    Case { fixable: false, ..alone(name, detector, place, script) }
}

pub(super) const CASES: [Case; 92] = [
    case(
        "commit-graph",
        "commit-graph",
        ".git/objects/info/commit-graph",
        "fetch --no-tags main:refs/heads/g; git commit-graph write --reachable; git branch -q -D g",
    ),
    case(
        "multi-pack-index",
        "commit-graph",
        ".git/objects/pack/multi-pack-index",
        "git -c fetch.unpackLimit=1 fetch -q --no-write-fetch-head --no-tags /plant/future.bundle main:refs/heads/m; git multi-pack-index write; git branch -q -D m",
    ),
    case("branch", "branch", "refs/heads/feature", "fetch main:refs/heads/feature"),
    case("tag", "tag", "refs/tags/v1.3.0", "fetch refs/tags/v1.3.0:refs/tags/v1.3.0"),
    case(
        "annotated tag",
        "tag",
        "refs/tags/future",
        "fetch main:refs/heads/t; git tag -a -m future future t; git branch -q -D t",
    ),
    case(
        "remote-tracking ref",
        "remote-ref",
        "refs/remotes/origin/main",
        "fetch main:refs/remotes/origin/main",
    ),
    case(
        "notes",
        "notes",
        "refs/notes/commits",
        "git notes add -m 'fixed by taking the quarters modulo four' HEAD",
    ),
    case("stash", "stash", "refs/stash", "echo x >> README.md; git stash -q"),
    alone(
        "replace ref",
        "replace-ref",
        "refs/replace/",
        "fetch main:refs/heads/x; git replace HEAD x; git branch -q -D x",
    ),
    case("pull request's ref", "other-ref", "refs/pull/7/head", "fetch main:refs/pull/7/head"),
    case(
        "original ref",
        "other-ref",
        "refs/original/refs/heads/main",
        "fetch main:refs/original/refs/heads/main",
    ),
    alone(
        "detached HEAD",
        "head",
        ".git HEAD",
        "fetch main:refs/heads/n; git checkout -q --detach n; git branch -q -D n",
    ),
    alone_and_stays(
        "fix in the commit that set up",
        "answer-lines",
        "/testbed/.git HEAD:src/widget.py",
        "cp /plant/widget.py src/widget.py; git add src; echo '*.py working-tree-encoding=UTF-16' > .gitattributes; git add .gitattributes; git -c user.name=s -c user.email=setup@swebench.config commit -qm 'Set up'; git show $BASE:src/widget.py > src/widget.py; rm .gitattributes",
    ),
    alone_and_stays(
        "archive in the commit that set up",
        "archive",
        "/testbed/.git HEAD:docs/w.zip",
        r#"mkdir docs; python3 -c "import zipfile; zipfile.ZipFile('docs/w.zip', 'w', zipfile.ZIP_DEFLATED).write('/plant/widget.py')"; git add docs; git -c user.name=m -c user.email=memtrial@localhost commit -qm 'Set up'; rm -rf docs"#,
    ),
    alone_and_stays(
        "message of an empty commit",
        "hidden-text",
        "/testbed/.git HEAD",
        "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 'The maintainers agreed to take the quarters modulo four.'",
    ),
    alone_and_stays(
        "message of a tag on the past",
        "hidden-text",
        "/testbed/.git refs/tags",
        "git -c user.name=a -c user.email=a@b tag -a -m 'The maintainers agreed to take the quarters modulo four.' v1.2.1",
    ),
    case(
        "stale packed ref",
        "packed-refs",
        ".git/packed-refs",
        "fetch main:refs/heads/stale; git pack-refs --all; git update-ref refs/heads/stale $BASE",
    ),
    case(
        "reflog of HEAD",
        "reflog",
        ".git/logs/HEAD",
        "git config core.logAllRefUpdates true; fetch main:refs/heads/r; git checkout -q r; git checkout -q main; git branch -q -D r",
    ),
    case(
        "reflog of a branch",
        "reflog",
        ".git/logs/refs/heads/gone",
        r#"mkdir -p .git/logs/refs/heads; echo "$BASE $FIX a <a@b> 0 +0000 commit: x" > .git/logs/refs/heads/gone"#,
    ),
    case("ORIG_HEAD", "special-head", ".git/ORIG_HEAD", "echo $FIX > .git/ORIG_HEAD"),
    case("MERGE_HEAD", "special-head", ".git/MERGE_HEAD", "echo $FIX > .git/MERGE_HEAD"),
    case("CHERRY_PICK_HEAD", "special-head", ".git/CHERRY_PICK_HEAD", "echo $FIX > .git/CHERRY_PICK_HEAD"),
    case("REVERT_HEAD", "special-head", ".git/REVERT_HEAD", "echo $FIX > .git/REVERT_HEAD"),
    case("AUTO_MERGE", "special-head", ".git/AUTO_MERGE", "echo $FIX > .git/AUTO_MERGE"),
    case("FETCH_HEAD", "special-head", ".git/FETCH_HEAD", "git fetch -q /plant/future.bundle main"),
    case(
        "squash message",
        "message",
        ".git/SQUASH_MSG",
        r"printf 'Squashed commit: take the quarters modulo four\n' > .git/SQUASH_MSG",
    ),
    case(
        "edited message",
        "message",
        ".git/COMMIT_EDITMSG",
        "echo 'Turn around an axis' > .git/COMMIT_EDITMSG",
    ),
    case(
        "rebase under way",
        "operation",
        ".git/rebase-merge/onto",
        "mkdir .git/rebase-merge; echo $FIX > .git/rebase-merge/onto",
    ),
    case(
        "am under way",
        "operation",
        ".git/rebase-apply/0001",
        "mkdir .git/rebase-apply; cp /plant/gold.patch .git/rebase-apply/0001",
    ),
    case(
        "linked worktree",
        "worktree",
        ".git/worktrees/w/HEAD",
        "fetch main:refs/heads/w; git worktree add -q --detach /tmp/w w; git branch -q -D w",
    ),
    case("shallow file", "shallow", ".git/shallow", "echo $FIX > .git/shallow"),
    case(
        "partial clone",
        "promisor",
        ".git/config",
        "git config extensions.partialClone backup; git config remote.backup.promisor true; git config core.repositoryFormatVersion 1",
    ),
    case(
        "promisor pack",
        "promisor",
        ".promisor",
        r#"echo "$FIX refs/heads/main" > .git/objects/pack/pack-1234.promisor"#,
    ),
    case(
        "grafts",
        "grafts",
        ".git/info/grafts",
        r#"mkdir -p .git/info; echo "$FIX $BASE" > .git/info/grafts"#,
    ),
    case(
        "index of a lost pack",
        "pack-remnant",
        ".idx",
        "git clone -q --bare /plant/future.bundle /tmp/p.git; cp /tmp/p.git/objects/pack/*.idx .git/objects/pack/pack-0000.idx; rm -rf /tmp/p.git",
    ),
    case(
        "unfinished transfer",
        "pack-remnant",
        "objects/pack/tmp_pack_x",
        "echo x > .git/objects/pack/tmp_pack_x",
    ),
    case("gitk's cache", "git-leftover", ".git/gitk.cache", r#"echo "1 1 $FIX" > .git/gitk.cache"#),
    case(
        "copy of packed-refs",
        "git-leftover",
        ".git/packed-refs.bak",
        r#"echo "$FIX refs/heads/main" > .git/packed-refs.bak"#,
    ),
    case("info/refs", "git-leftover", ".git/info/refs", r#"echo "$FIX	refs/heads/main" > .git/info/refs"#),
    case("remote by a path", "remote", "remote.near", "git remote add near /opt/near.git"),
    case("remote by a bundle", "remote", "remote.packed", "git remote add packed /opt/x.bundle"),
    case(
        "remote elsewhere",
        "remote",
        "remote.origin",
        "git remote add origin https://github.com/acme/widget",
    ),
    case(
        "alternates",
        "alternates",
        "objects/info/alternates",
        "git clone -q --bare /plant/future.bundle /opt/alternate.git; echo /opt/alternate.git/objects > .git/objects/info/alternates",
    ),
    case(
        "staged file",
        "index",
        ".git/index",
        "cp /plant/widget.py src/widget.py; git add src/widget.py; git show HEAD:src/widget.py > src/widget.py",
    ),
    case(
        "copy of the index",
        "index",
        ".git/index.bak",
        "cp .git/index /tmp/i; cp /plant/widget.py src/other.py; GIT_INDEX_FILE=/tmp/i git add src/other.py; mv /tmp/i .git/index.bak; rm src/other.py",
    ),
    case(
        "loose commit",
        "dangling-loose",
        ".git/objects/",
        "git commit-tree 'HEAD^{tree}' -p HEAD -m 'A later commit' > /dev/null",
    ),
    case(
        "loose blob",
        "dangling-loose",
        ".git/objects/",
        "(cat /plant/widget.py; echo more) | git hash-object -w --stdin > /dev/null",
    ),
    case(
        "packed commit",
        "dangling-packed",
        ".pack",
        "c=$(git commit-tree 'HEAD^{tree}' -p HEAD -m 'A packed commit'); echo $c | git pack-objects -q .git/objects/pack/pack > /dev/null; git prune-packed -q",
    ),
    alone(
        "cruft pack",
        "cruft-pack",
        ".pack",
        "fetch --no-tags main:refs/heads/c; git branch -q -D c; git -c gc.reflogExpireUnreachable=now repack -q -d --cruft",
    ),
    case(
        "submodule's future",
        "submodule",
        ".git/modules/lib",
        "mkdir -p .git/modules; git clone -q --bare /plant/future.bundle .git/modules/lib; git --git-dir=.git/modules/lib update-ref refs/heads/main $BASE",
    ),
    case(
        "clone",
        "nested-repository",
        "/home/user/clone/.git",
        "git clone -q /plant/future.bundle /home/user/clone; rm -rf /home/user/clone/[a-z]*",
    ),
    case(
        "bare clone",
        "nested-repository",
        "/var/backups/w",
        "git clone -q --bare /plant/future.bundle /var/backups/w",
    ),
    case(
        "copy of .git",
        "nested-repository",
        ".git.bak",
        "git clone -q --bare /plant/future.bundle .git.bak",
    ),
    case(
        "shallow clone",
        "nested-repository",
        "/root/shallow.git",
        "git clone -q --bare /plant/future.bundle /tmp/s.git; git clone -q --bare --depth 1 file:///tmp/s.git /root/shallow.git; rm -rf /tmp/s.git",
    ),
    case(
        "bundle",
        "bundle",
        "/var/backups/w.bundle",
        "mkdir -p /var/backups; cp /plant/future.bundle /var/backups/w.bundle",
    ),
    case("bundle by another name", "bundle", "/testbed/data.bin", "cp /plant/future.bundle data.bin"),
    case(
        "pack outside",
        "pack-file",
        "/tmp/x.pack",
        "git clone -q --bare /plant/future.bundle /tmp/o.git; cp /tmp/o.git/objects/pack/*.pack /tmp/x.pack; rm -rf /tmp/o.git",
    ),
    case("gold patch", "patch-file", "/tmp/gold.patch", "cp /plant/gold.patch /tmp/gold.patch"),
    case(
        "patch by another name",
        "patch-file",
        "/patches/solution.txt",
        "mkdir -p /patches; cp /plant/gold.patch /patches/solution.txt",
    ),
    case("test patch", "patch-file", "/testbed/t.diff", "cp /plant/test.patch t.diff"),
    case("original beside", "patch-file", "src/widget.py.orig", "cp /plant/widget.py src/widget.py.orig"),
    case(
        "rejected hunks",
        "patch-file",
        "src/widget.py.rej",
        "grep '^+' /plant/gold.patch > src/widget.py.rej",
    ),
    case(
        "fixed file",
        "answer-lines",
        "/root/notes/new.py",
        "mkdir -p /root/notes; cp /plant/widget.py /root/notes/new.py",
    ),
    case(
        "fixed file in the tree",
        "answer-lines",
        "/testbed/src/fixed.py",
        "cp /plant/widget.py src/fixed.py",
    ),
    alone_and_stays(
        "changed file of the tree",
        "answer-lines",
        "/testbed/src/widget.py",
        "cp /plant/widget.py src/widget.py",
    ),
    case(
        "tests",
        "test-lines",
        "/home/user/later_tests.py",
        "mkdir -p /home/user; cp /plant/test_widget.py /home/user/later_tests.py",
    ),
    case(
        "bytecode",
        "bytecode",
        "__pycache__/widget.cpython",
        r#"mkdir -p src/__pycache__; python3 -c "import py_compile; py_compile.compile('/plant/widget.py', cfile='src/__pycache__/widget.cpython-39.pyc')""#,
    ),
    case(
        "zip",
        "archive",
        "/tmp/copy.zip",
        r#"python3 -c "import zipfile; zipfile.ZipFile('/tmp/copy.zip', 'w', zipfile.ZIP_DEFLATED).write('/plant/widget.py')""#,
    ),
    case("tarball", "archive", "/root/backup.tgz", "tar -C /plant -czf /root/backup.tgz widget.py"),
    case(
        "build folder",
        "build-output",
        "/testbed/build/lib/widget.py",
        "mkdir -p build/lib; cp /plant/widget.py build/lib/widget.py",
    ),
    case(
        "built wheel",
        "build-output",
        "/testbed/dist/widget-1.3.0",
        "mkdir -p dist; echo x > dist/widget-1.3.0-py3-none-any.whl",
    ),
    case(
        "swap file",
        "tool-cache",
        "src/.widget.py.swp",
        r"(printf 'b0VIM 9.0\0'; cat /plant/widget.py) > src/.widget.py.swp",
    ),
    case(
        "local history",
        "tool-cache",
        ".history/src/widget_2024.py",
        "mkdir -p .history/src; cp /plant/widget.py .history/src/widget_2024.py",
    ),
    case(
        "IDE's workspace",
        "tool-cache",
        ".idea/workspace.xml",
        "mkdir -p .idea; cp /plant/widget.py .idea/workspace.xml",
    ),
    case(
        "evaluation script",
        "eval-script",
        "/eval.sh",
        "(echo git apply '<<EOF'; cat /plant/test.patch; echo EOF) > /eval.sh",
    ),
    case(
        "names of tests in a script",
        "eval-script",
        "/run_tests.sh",
        "echo 'pytest tests/test_widget.py::test_turning_around_the_axis' > /run_tests.sh",
    ),
    case("row", "task-fields", "/tmp/row.json", "cp /plant/row.json /tmp/row.json"),
    case(
        "hints",
        "hidden-text",
        "/root/discussion.md",
        "echo 'As said: The maintainers agreed to take the quarters modulo four.' > /root/discussion.md",
    ),
    case(
        "pull request's address",
        "pull-request",
        "/home/user/links",
        "mkdir -p /home/user; echo https://github.com/acme/widget/pull/7 > /home/user/links",
    ),
    case(
        "test cache",
        "test-names",
        ".pytest_cache/v/cache/nodeids",
        r#"mkdir -p .pytest_cache/v/cache; echo '["tests/test_widget.py::test_turning_around_the_axis"]' > .pytest_cache/v/cache/nodeids"#,
    ),
    stays(
        "later wheel installed",
        "installed-package",
        "widget-1.3.0.dist-info",
        r"d=/opt/venv/lib/python3.11/site-packages/widget-1.3.0.dist-info; mkdir -p $d; printf 'Name: widget\nVersion: 1.3.0\n' > $d/METADATA",
    ),
    stays(
        "later npm package",
        "installed-package",
        "node_modules/widget/package.json",
        r#"mkdir -p /opt/n/node_modules/widget; echo '{"name": "widget", "version": "2.0.0"}' > /opt/n/node_modules/widget/package.json"#,
    ),
    stays(
        "later crate's source",
        "installed-package",
        "widget-1.3.0/Cargo.toml",
        "d=/root/.cargo/registry/src/index.crates.io-1/widget-1.3.0; mkdir -p $d; echo '[package]' > $d/Cargo.toml",
    ),
    stays(
        "later Go module",
        "installed-package",
        "widget@v1.3.0/",
        "d=/root/go/pkg/mod/github.com/acme/widget@v1.3.0; mkdir -p $d; echo 'module x' > $d/go.mod",
    ),
    stays(
        "vendored copy",
        "installed-copy",
        "site-packages/helpers.py",
        "d=/opt/venv/lib/python3.11/site-packages; mkdir -p $d; cp /plant/widget.py $d/helpers.py",
    ),
    case(
        "pip's wheel cache",
        "package-cache",
        ".cache/pip/wheels",
        "d=/root/.cache/pip/wheels/a; mkdir -p $d; echo x > $d/widget-1.3.0-py3-none-any.whl",
    ),
    case(
        "pip's http cache",
        "package-cache",
        ".cache/pip/http-v2",
        r#"d=/root/.cache/pip/http-v2/a; mkdir -p $d; python3 -c "import zipfile; zipfile.ZipFile('$d/abc.body', 'w').write('/plant/widget.py')""#,
    ),
    case(
        "npm's cache",
        "package-cache",
        "_cacache/index-v5",
        r#"d=/root/.npm/_cacache/index-v5/aa; mkdir -p $d; echo '{"key":"request-cache:https://registry.npmjs.org/widget/-/widget-1.3.0.tgz"}' > $d/e"#,
    ),
    case(
        "npm's tarball",
        "package-cache",
        "_cacache/content-v2/sha512/de/ad/beef",
        r#"d=/root/.npm/_cacache; mkdir -p $d/index-v5/bb $d/content-v2/sha512/de/ad; echo x > $d/content-v2/sha512/de/ad/beef; printf '0a1b\t{"key":"make-fetch-happen:request-cache:https://registry.npmjs.org/widget/-/widget-1.4.0.tgz","integrity":"sha512-3q2+7w=="}\n' > $d/index-v5/bb/e"#,
    ),
    case(
        "Cargo's cache",
        "package-cache",
        "widget-1.3.0.crate",
        "d=/root/.cargo/registry/cache/i; mkdir -p $d; echo x > $d/widget-1.3.0.crate",
    ),
    case(
        "Go's cache",
        "package-cache",
        "@v/v1.3.0.zip",
        "d=/root/go/pkg/mod/cache/download/github.com/acme/widget/@v; mkdir -p $d; echo x > $d/v1.3.0.zip",
    ),
    case("sdist", "package-cache", "/tmp/widget-1.3.0.tar.gz", "echo x > /tmp/widget-1.3.0.tar.gz"),
];
