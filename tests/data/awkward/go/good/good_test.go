package good

import (
	"fmt"
	"testing"
)

func TestShared(t *testing.T) { fmt.Println("FAIL") }
