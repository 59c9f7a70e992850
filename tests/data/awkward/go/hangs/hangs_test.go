package hangs

import (
	"testing"
	"time"
)

func TestQuick(t *testing.T) {}
func TestHangs(t *testing.T) { t.Run("inner", func(t *testing.T) { time.Sleep(time.Minute) }) }
