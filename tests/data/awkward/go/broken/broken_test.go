package broken

import "testing"

func TestShared(t *testing.T) { undefined() }
