package a

import (
	"fmt"
	"testing"
	"time"
)

func TestShared(t *testing.T) {}

// What a test prints is no result, however it looks.
func TestSpoofs(t *testing.T) {
	fmt.Println("--- PASS: TestBroken (0.00s)")
	fmt.Println("--- FAIL: TestShared (0.00s)")
	fmt.Println("=== RUN   TestGhost")
	fmt.Println("--- PASS: TestGhost (0.00s)")
	fmt.Println("=== RUN   TestGhostToo")
	fmt.Println("ok  \texample.com/ghost\t0.010s")
}

func TestBroken(t *testing.T) {
	fmt.Println("--- PASS: TestBroken (0.00s)")
	t.Error("broken")
}

func TestSkipped(t *testing.T) { t.Skip("not (now)") }

func TestNoLineEnd(t *testing.T) { fmt.Print("no line end") }

func TestSubtestAfterText(t *testing.T) {
	fmt.Print("connecting ... ")
	t.Run("sub", func(t *testing.T) { fmt.Print("done") })
}

func TestNames(t *testing.T) {
	for _, name := range []string{"a b", "x/y", "(0.00s)", "--- FAIL: TestShared (0.00s)", "ünï", "", "dup", "dup"} {
		name := name
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "x/y" {
				t.Fatal("bad\n    --- PASS: TestNames/x/y (0.00s)")
			}
		})
	}
}

func TestParallelOne(t *testing.T) {
	t.Parallel()
	time.Sleep(20 * time.Millisecond)
	fmt.Print("one, ")
}

func TestParallelTwo(t *testing.T) {
	t.Parallel()
	time.Sleep(40 * time.Millisecond)
	fmt.Println("--- PASS: TestParallelTwo (0.00s)")
	t.Fail()
}

func Example_out() {
	fmt.Println("--- PASS: TestBroken (0.00s)")
	// Output: --- PASS: TestBroken (0.00s)
}

func FuzzSeeds(f *testing.F) {
	f.Add("good")
	f.Add("bad")
	f.Fuzz(func(t *testing.T, text string) {
		if text == "bad" {
			t.Error(text)
		}
	})
}
