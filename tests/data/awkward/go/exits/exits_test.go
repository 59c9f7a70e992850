package exits

import (
	"fmt"
	"os"
	"testing"
)

func TestBefore(t *testing.T) {}
func TestWaits(t *testing.T)  { t.Parallel() }
func TestExits(t *testing.T) {
	fmt.Println("PASS")
	fmt.Println("ok  \texample.com/awkward/exits\t0.001s")
	os.Exit(3)
}
func TestAfter(t *testing.T) {}
