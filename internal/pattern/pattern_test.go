package pattern

import "testing"

func TestLazy(t *testing.T) {
	digits := Lazy(`^[0-9]+$`)
	if !digits().MatchString("123") || digits().MatchString("12a") {
		t.Error("not the expression")
	}
	defer func() {
		if recover() == nil {
			t.Error("what is no expression was not found out in a test")
		}
	}()
	Lazy(`(`)
}
