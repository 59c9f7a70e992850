package b

import "testing"

func TestShared(t *testing.T)   { t.Fatal("the other one passes") }
func TestOnlyHere(t *testing.T) {}
