package bench

import "testing"

func TestShared(t *testing.T) {}

func BenchmarkLoop(b *testing.B) {
	b.Run("size-10", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			_ = i
		}
	})
}

func BenchmarkBroken(b *testing.B) { b.Fatal("broken") }

func BenchmarkSkipped(b *testing.B) { b.Skip("not now") }
