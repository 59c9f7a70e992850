@test "passes" { true; }
@test "fails # weird (3ms)" { false; }
@test "skips" { skip "later (really)"; }
@test "skips bare" { skip; }
@test " ✓ marks" { echo " ✓ fake"; true; }
@test "prints to the terminal" { echo " ✓ fake" >&3; echo "ok 9 fake" >&3; true; }
@test "same" { true; }
