setup() { [ "$BATS_TEST_DESCRIPTION" != "no set-up" ]; }
@test "no set-up" { true; }
@test "same" { false; }
