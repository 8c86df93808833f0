package lazyregexp

import "testing"

func TestNew(t *testing.T) {
	if !New(`^a+$`).MatchString("aaa") {
		t.Error("^a+$ does not match aaa")
	}
	defer func() {
		if recover() == nil {
			t.Error("in a test, a wrong expression is found when it is declared")
		}
	}()
	New(`(`)
}
